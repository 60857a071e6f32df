"""One module per command that belongs to no stage."""
