"""`kernel` and `is_compiled` of `scoring.jit`, under the name that the kernels of this folder import."""

from scoring.jit import is_compiled, kernel

__all__ = ["is_compiled", "kernel"]
