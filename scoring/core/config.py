"""The `@config` decorator: strict frozen dataclasses that `params.yaml` is read into."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def config(cls: type[T]) -> type[T]:
    """Returns `cls` as a frozen, keyword-only dataclass that refuses unknown keys and wrong types.

    The strictness is declared here and carried out by pydantic in `pipelines.core.params`, so modules that
    only hold numbers need not import it. Range checks belong in `__post_init__` as `ValueError`.
    """
    cls.__pydantic_config__ = {"extra": "forbid", "strict": True}  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(cls)
