"""Models in Beam: loaded once per worker process, whatever its threads and bundles."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import apache_beam as beam
from apache_beam.utils.shared import Shared

from transforms.core.parts import Part

M = TypeVar("M")


class MapWithModel(beam.DoFn, Generic[M]):
    """Applies `apply(part, model)` to each part; `load()` runs once per process, in `setup`.

    Both are picklable recipes: module-level functions, bound methods of frozen dataclasses, or partials.
    """

    def __init__(self, load: Callable[[], M], apply: Callable[[Part, M], Part]) -> None:
        self._load = load
        self._apply = apply
        self._shared = Shared()

    def setup(self) -> None:
        self._model = self._shared.acquire(self._load)

    def process(self, part: Part) -> Iterator[Part]:
        yield self._apply(part, self._model)
