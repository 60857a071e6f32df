"""The stage `quality`: its transform, config, values of the text, labels and further models."""
