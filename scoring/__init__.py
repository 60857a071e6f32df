"""What a number means: the maths and the models. Imports neither Beam, YAML nor DuckDB.

Public surface, for extensions (docs/extending.md):
  DIMENSIONS      the dimensions of the static score (static/dimensions.py); static/text.py reads those of texts
  GradsiftError   what every layer raises, with where and remedy (core/errors.py)
All else may change.
"""
