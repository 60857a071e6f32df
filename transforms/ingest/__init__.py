"""The stage `ingest`: units of work, rows, the media that rows name, writers."""
