"""The static score: readings of a row, their scale, and weights by AHP."""
