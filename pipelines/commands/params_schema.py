"""The JSON schema of a params file, with which editors complete keys, show what they mean, and mark slips.

It is made from the config classes and from the comments in the defaults. Nothing but an entry of a list has required
keys: a params file holds what differs.
"""

import importlib
import json
import re
from typing import Any

from pipelines.core import params, yaml_text

NAME = "params.schema.json"
_COMMENT = re.compile(r"\s#\s+(.*)")


def text() -> str:
    """Returns the schema as JSON."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """Returns the schema of a params file."""
    from pydantic import TypeAdapter

    adapters = [(name, "validation", TypeAdapter(_kind(target))) for name, target in params.SECTIONS.items()]
    sections, shared = TypeAdapter.json_schemas(adapters)  # type: ignore[arg-type]
    root = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradsift params",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: sections[name, "validation"] for name in params.SECTIONS},
        "$defs": shared.get("$defs", {}),
    }
    defaults = params.DEFAULTS.read_text(encoding="utf-8")
    _describe(root, root, yaml_text.parse(defaults), params.defaults(), defaults.splitlines())
    for name, section in root["properties"].items():  # `plan:` alone is a section in which nothing differs
        told = {"description": section.pop("description")} if "description" in section else {}
        root["properties"][name] = {"anyOf": [section, {"type": "null"}], **told}
    return root


def _kind(target: str) -> Any:
    module, kind = target.split(":")
    return getattr(importlib.import_module(module), kind)


def _describe(root: dict[str, Any], part: dict[str, Any], node: Any, default: Any, lines: list[str]) -> None:
    """Adds the defaults and their comments to the properties of `part`, and takes what is required from it."""
    part = _resolved(root, part)
    part.pop("required", None)
    for key, value in node.value:
        found = part.get("properties", {}).get(key.value)
        if found is None:
            continue
        comment = _COMMENT.search(lines[key.start_mark.line])
        if comment:
            found["description"] = comment[1]
        if isinstance(default[key.value], dict) and _resolved(root, found).get("properties"):
            _describe(root, found, value, default[key.value], lines)
        else:
            found["default"] = default[key.value]


def _resolved(root: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        part = root["$defs"][part["$ref"].rsplit("/", 1)[1]]
    return part
