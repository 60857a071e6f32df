"""Types that many modules name; nothing is imported for them."""

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]  # as JSON holds it: who reads a value knows what it is
