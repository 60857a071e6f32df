"""Which own modules a stage imports: the code version in fingerprints."""

import ast
import hashlib
from functools import cache

from scoring.core.imports import closure, tree


@cache
def code_version(module: str) -> str:
    """Returns the digest of the code that decides what stage `module` writes.

    Comments, docstrings and layout do not count; neither do the other modules of `pipelines`, which
    decide when and where a stage runs, not what it computes.
    """
    own = sorted(m for m in closure(module) if m == module or not m.startswith("pipelines"))
    return hashlib.blake2b("\n".join(f"{m} {_digest(m)}" for m in own).encode(), digest_size=16).hexdigest()


@cache
def _digest(module: str) -> str:
    return hashlib.blake2b(ast.dump(tree(module)).encode(), digest_size=16).hexdigest()
