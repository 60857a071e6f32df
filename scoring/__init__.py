"""What a number means: the maths and the models. Imports neither Beam, YAML nor DuckDB."""
