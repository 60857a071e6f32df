"""The embedded default corpus: texts that are installed, pictures and recordings that are computed, planted faults."""
