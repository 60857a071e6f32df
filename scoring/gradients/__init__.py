"""Exact per-sample gradient norms, dot products and sketches, in one batched pass."""
