"""Types that many modules name; nothing is imported for them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]  # as JSON holds it: who reads a value knows what it is
Record: TypeAlias = Mapping[str, Any]  # a row of a table: who reads a value knows what its column holds
