"""What is asked of a finished run: DuckDB views, queries, what-if, explain and rescore."""
