"""What the benchmarks are run on: texts, corpora and models, made here or read from files."""
