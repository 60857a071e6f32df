"""Additional rules, one per file: every module of this folder is used, `docs/extending.md` shows how.

A module holds `RULE`, whose value is the column `extra_<file>` and whose threshold is `extra.<code>`;
`measure(texts)`, the value of each text, null where it says nothing; and `FAILS` and `PASSES`, a text on either side
of `BOUND`. A rule that `clean.extra` in params does not name is not measured: its column is null.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pyarrow as pa


@cache
def modules() -> Mapping[str, ModuleType]:
    """Returns the modules of this folder by the code of their rule, in the order of their names."""
    found = [import_module(f"{__name__}.{m.name}") for m in sorted(iter_modules(__path__))]
    return {module.RULE.code: module for module in found}


def measure(texts: pa.LargeStringArray, named: Mapping[str, float]) -> dict[str, pa.Array]:
    """Returns, by column, the values of every rule of this folder, (n,) float64; of those not `named`, nulls."""
    none = pa.nulls(len(texts), pa.float64())
    return {m.RULE.value: m.measure(texts) if code in named else none for code, m in modules().items()}
