"""The one strict reader of `params.yaml`: unknown key, wrong type, missing key → the dotted path.

A section belongs to the config class named in `SECTIONS`, beside the logic it configures. Defaults
stand in `defaults.yaml` alone, and params.yaml holds what differs from them; only optional keys of `ingest.sources`
have defaults in code.
"""

import importlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scoring.core.errors import ConfigError
from scoring.core.types import Record

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

C = TypeVar("C")

DEFAULTS = Path(__file__).with_name("defaults.yaml")

SECTIONS = {
    "runtime": "pipelines.core.options:RuntimeConfig",
    "sample": "pipelines.sample_corpus.config:SampleConfig",
    "ingest": "transforms.ingest.config:IngestConfig",
    "clean": "transforms.clean.config:CleanConfig",
    "dedup": "transforms.dedup.config:DedupConfig",
    "quality": "transforms.quality.config:QualityConfig",
    "tokens": "scoring.order.cost_config:TokensConfig",
    "reference": "scoring.reference.config:ReferenceConfig",
    "gradients": "transforms.gradients.config:GradientsConfig",
    "static": "transforms.static.config:StaticConfig",
    "lqs": "transforms.lqs.config:LqsSection",
    "plan": "scoring.order.config:PlanConfig",
    "shard": "transforms.shard.config:ShardConfig",
    "report": "pipelines.reporting.config:ReportConfig",
}


@dataclass(frozen=True)
class Params:
    """The raw tree of one params file, defaults included; sections become config objects on demand."""

    path: Path
    tree: Record

    def section(self, name: str, kind: type[C]) -> C:
        """Returns section `name` as a `kind`.

        Raises:
          ConfigError: with the dotted path, the value and what is wanted.
        """
        if name not in self.tree:
            raise ConfigError(f"missing section: {name}", where=str(self.path), remedy=f"add `{name}:`")
        return _validate(kind, name, self.tree[name], self.path)

    def check(self) -> None:
        """Validates every section, so that a run does not fail hours later because of a typo."""
        unknown = sorted(set(self.tree) - set(SECTIONS))
        if unknown:
            raise ConfigError(
                f"unknown section: {', '.join(name + _nearest(name, SECTIONS) for name in unknown)}",
                where=str(self.path),
                remedy=f"use one of {', '.join(SECTIONS)}",
            )
        for name, target in SECTIONS.items():
            module, kind = target.split(":")
            self.section(name, getattr(importlib.import_module(module), kind))


def read(path: Path) -> Params:
    """Returns the params of the file `path`, laid over the defaults.

    Raises:
      ConfigError: the file is missing, or is not a YAML mapping with unique keys.
    """
    own = read_own(path)
    sections = {name: value for name, value in own.items() if value is not None}  # `plan:` alone changes nothing
    return Params(path, merge(defaults(), sections))


@cache
def defaults() -> Mapping[str, Any]:
    """Returns the defaults of every section; they are not to be changed."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(DEFAULTS.read_text(encoding="utf-8"), loader))  # noqa: S506 (a SafeLoader)


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `base` with `changes`: mappings are merged key by key, all else replaces what `base` has."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        merged[key] = merge(base[key], value) if both else value
    return merged


def read_own(path: Path) -> dict[str, Any]:
    """Returns what the file `path` holds itself, without the defaults."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.load(text, _unique_loader())  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise ConfigError(
            "no params file",
            where=str(path),
            remedy="run inside a gradsift project (`gradsift init` starts one), or pass --params FILE",
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(
            f"cannot read params: {error}", where=str(path), remedy="fix the file; it must be YAML in UTF-8"
        ) from error
    if tree is None and text.strip():  # comments alone: nothing differs
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(
            "the params file is not a mapping of sections",
            where=str(path),
            remedy="write sections such as `plan:`; `gradsift params` prints all of them",
        )
    return tree


def _unique_loader() -> type:
    """Returns a SafeLoader that rejects duplicate keys (by default YAML silently keeps the last one)."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            keys = [self.construct_object(k, deep=True) for k, _ in node.value]
            twice = sorted({str(k) for k in keys if keys.count(k) > 1})
            if twice:
                raise yaml.YAMLError(f"duplicate key: {', '.join(twice)} (line {node.start_mark.line + 1})")
            return dict(super().construct_mapping(node, deep))

    return Loader


def _validate(kind: type[C], name: str, value: object, path: Path) -> C:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_json(json.dumps(value, default=str))
    except ValidationError as error:
        raise ConfigError(
            "\n".join(_sentences(name, error)),
            where=str(path),
            remedy="fix the keys above; `gradsift params` prints every key with a comment",
        ) from error


def _sentences(name: str, error: "ValidationError") -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False):
        dotted = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in fault["loc"])
        if fault["type"] == "unexpected_keyword_argument":
            hint = _nearest(str(fault["loc"][-1]), _siblings(name, fault["loc"][:-1]))
            yield f"{name}{dotted}: unknown key (value {fault['input']!r}){hint}"
        elif fault["type"] == "missing":
            yield f"{name}{dotted}: missing key"
        else:
            yield f"{name}{dotted}: {_with_value(fault)}"


def _siblings(name: str, path: Iterable[int | str]) -> Iterable[str]:
    """Returns the keys that the defaults have at `path` of section `name`."""
    spot: Any = defaults().get(name)
    for key in path:
        spot = spot.get(key) if isinstance(spot, Mapping) else None
    return spot if isinstance(spot, Mapping) else ()


def _nearest(word: str, known: Iterable[str]) -> str:
    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _with_value(fault: "ErrorDetails") -> str:
    """Returns what is wrong and the value; our checks of a whole section already name the value."""
    if fault["type"] == "value_error":
        return str(fault["msg"].removeprefix("Value error, "))
    shown = repr(fault["input"])
    return f"{fault['msg']}, not {shown if len(shown) < 200 else shown[:200] + '…'}"
