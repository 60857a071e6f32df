"""The stage `lqs`: its transform, config, canaries and the distilled scorer."""
