"""The stage `gradients`: its transform, config, checkpoints and the machine's load."""
