"""The stage `static`: its transform, config and the readings of media."""
