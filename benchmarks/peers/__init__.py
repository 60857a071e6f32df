"""The same work in other tools; each script runs under an interpreter that has its tool."""
