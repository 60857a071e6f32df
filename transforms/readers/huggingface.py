"""Any dataset that Hugging Face `datasets` loads from this machine; the position of a row is its index."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scoring.core.errors import ConfigError
from transforms.readers.base import Extent, Fault, Item, Record

if TYPE_CHECKING:
    from datasets import IterableDataset

_SAVED = ("state.json", "dataset_dict.json")


def read_huggingface(extent: Extent) -> Iterator[Item]:
    """Yields the rows of one split, media undecoded, class labels by name, wherever they stand in a row.

    Raises:
      ConfigError: the dataset or the split cannot be loaded.
    """
    rows = _open(extent)
    features = {c: f for c, f in (rows.features or {}).items() if _has_names(f)}
    index = -1
    try:
        for index, row in enumerate(rows):
            yield Record(index, {**row, **{c: _named(f, row[c]) for c, f in features.items()}})
    except Exception as error:  # noqa: BLE001 (a builder raises what it likes; the rows before it stay)
        yield Fault(index + 1, "bad_value", f"cannot read rows from {index + 1} onwards: {error}")


def _inner(feature: object) -> object:
    """Returns the feature of a list's items; None for any other."""
    return feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)


def _has_names(feature: object) -> bool:
    """Returns whether there is a class label in `feature`, which may be nested."""
    if isinstance(feature, dict):
        return any(map(_has_names, feature.values()))
    inner = _inner(feature)
    return type(feature).__name__ == "ClassLabel" if inner is None else _has_names(inner)


def _named(feature: object, value: object) -> object:
    """Returns `value` with the names of its class labels; -1 stands for no label, a number without a name stays."""
    if isinstance(feature, dict) and isinstance(value, dict):
        return {k: _named(feature.get(k), v) for k, v in value.items()}
    inner = _inner(feature)
    if inner is not None and isinstance(value, dict):  # a sequence of structs, which `datasets` turns inside out
        return {k: _named([f], value.get(k)) for k, f in inner.items()} if isinstance(inner, dict) else value
    if inner is not None and isinstance(value, list):
        return [_named(inner, v) for v in value]
    if type(feature).__name__ != "ClassLabel" or not isinstance(value, int):
        return value
    names: list[str] = getattr(feature, "names", [])
    return None if value == -1 else names[value] if 0 <= value < len(names) else value


def _open(extent: Extent) -> "IterableDataset":
    """Returns the rows."""
    try:
        return _load(extent).decode(False)
    except Exception as error:
        raise ConfigError(
            f"datasets cannot load {extent.path} split {extent.source.split}: {error}",
            where=f"ingest.sources, {extent.source.name}",
            remedy="use a local folder or builder with its split and kwargs; nothing is downloaded",
        ) from error


def _load(extent: Extent) -> "IterableDataset":
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    import datasets

    datasets.config.HF_HUB_OFFLINE = datasets.config.HF_DATASETS_OFFLINE = True
    source = extent.source
    if any((extent.path / name).exists() for name in _SAVED):
        found = datasets.load_from_disk(str(extent.path))
        found = found[source.split] if isinstance(found, datasets.DatasetDict) else found
        return found.to_iterable_dataset()
    kwargs = {k: local(extent.root, v) for k, v in source.kwargs.items()}
    return datasets.load_dataset(str(extent.path), split=source.split, streaming=True, **kwargs)


def local(root: Path, value: object) -> object:
    """Returns `value` of kwargs with the paths in it that are there made absolute: `datasets` knows no project."""
    if isinstance(value, str):
        return str(root / value) if next(_glob(root, value), None) else value
    if isinstance(value, list):
        return [local(root, v) for v in value]
    return {k: local(root, v) for k, v in value.items()} if isinstance(value, dict) else value


def local_paths(root: Path, value: object) -> Iterator[Path]:
    """Yields the files and folders that `value` of kwargs names."""
    if isinstance(value, str):
        yield from _glob(root, value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from local_paths(root, inner)


def _glob(root: Path, value: str) -> Iterator[Path]:
    """Yields what the path or glob `value` names; a URL names nothing."""
    if os.path.lexists(root / value):
        yield root / value
    elif value and not os.path.isabs(value):
        yield from sorted(root.glob(value))
