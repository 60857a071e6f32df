"""`gradsift params`: every key of the project's params, the defaults included, with the comments that describe it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.commands import params_schema
from pipelines.core import params, yaml_text


def main(path: Path, *, as_json: bool, schema: bool) -> None:
    """Prints the params of the file `path` as YAML or JSON, or the schema of any params file.

    Raises:
      ConfigError: the params are wrong.
    """
    if schema:
        print(params_schema.text(), end="")
        return
    found = params.read(path)
    found.check()
    print(json.dumps(found.tree, indent=2, ensure_ascii=False) + "\n" if as_json else whole(found.tree), end="")


def whole(tree: Mapping[str, Any]) -> str:
    """Returns the text of the defaults with the values of `tree`; the comments stay."""
    text = params.DEFAULTS.read_text(encoding="utf-8")
    return yaml_text.edited(text, _changes(yaml_text.parse(text), params.defaults(), tree))


def _changes(node: Any, default: Any, value: Any) -> Iterator[yaml_text.Edit]:
    if value == default:
        return
    if isinstance(value, Mapping) and isinstance(default, Mapping) and not node.flow_style:
        for key, found in value.items():
            yield from _changes(yaml_text.child(node, key), default[key], found)
    else:
        yield yaml_text.replaced(node, value)
