"""YAML edited as text: what is not replaced stays as it was written, comments and layout included."""

from collections.abc import Iterable
from typing import Any

Edit = tuple[int, int, str]  # begin and end in the text, and what stands there instead


def parse(text: str) -> Any:
    """Returns the root node of `text`; its marks say where in the text each node stands.

    Raises:
      yaml.YAMLError: it is not YAML.
    """
    import yaml

    return yaml.compose(text, yaml.SafeLoader)


def child(node: Any, key: str) -> Any:
    """Returns the node of the value of `key` in the mapping `node`; None where there is none."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def replaced(node: Any, value: Any) -> Edit:
    """Returns the edit that puts `value` where `node` stands; a block of lines stays a block of lines."""
    import yaml

    start, end = node.start_mark.index, node.end_mark.index
    if not isinstance(node, yaml.SequenceNode) or node.flow_style or not isinstance(value, list) or not value:
        return start, end, flow(value)
    last: Any = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style:  # a block ends with its last scalar
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
    separator = "\n" + " " * node.start_mark.column
    return start, last.end_mark.index, separator.join(f"- {flow(item)}" for item in value)


def flow(value: Any) -> str:
    """Returns `value` as YAML on one line."""
    import yaml

    width = float("inf")
    shown = yaml.safe_dump([value], default_flow_style=True, width=width, sort_keys=False, allow_unicode=True)
    return shown.strip()[1:-1]


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns `text` with `edits`, which do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
