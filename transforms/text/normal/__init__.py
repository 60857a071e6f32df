"""Normalisation: mojibake, Unicode form, control characters, white space."""
