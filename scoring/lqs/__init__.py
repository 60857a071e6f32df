"""LQS: the formulas, and the distilled scorer."""
