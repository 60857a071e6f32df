"""Readers: files of one format in, records and faults out; a bad row never ends a file."""
