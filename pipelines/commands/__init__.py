"""One module a command that belongs to no stage."""
