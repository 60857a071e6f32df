"""What a stage computes over the whole corpus, before or after its parts."""
