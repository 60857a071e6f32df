"""Order, cost and balance of what training reads."""
