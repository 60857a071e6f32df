"""Personal data: patterns, checks, and keyed pseudonyms."""
