"""What runs: the stages, their params, Beam options, the command line and DuckDB."""
