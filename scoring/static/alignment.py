"""How well a caption fits its picture: the cosine of their vectors in a CLIP-like model (docs/scoring.md)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError
from scoring.models import load as models
from scoring.models.types import ImageProcessor, Model, Tensor, Tokenizer

if TYPE_CHECKING:
    from PIL.Image import Image

BATCH = 16  # texts or pictures through the model at a time
CHARS_PER_TOKEN = 32  # what lies beyond is cut by the tokenizer anyway
MAX_TEXT_TOKENS = 64  # where the model's config sets no bound

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Aligner:
    """A loaded CLIP-like model, and what turns texts and pictures into its inputs."""

    model: Model
    tokenizer: Tokenizer
    processor: ImageProcessor
    max_tokens: int

    def texts(self, texts: Sequence[str]) -> Vectors:
        """Returns (n, d) unit vectors of `texts`, each cut to the model's length."""
        return _all(self._texts(batch) for batch in _batches(texts))

    def pictures(self, pictures: Iterable["Image"]) -> Vectors:
        """Returns (n, d) unit vectors of Pillow pictures, of which one batch is held at a time."""
        return _all(self._pictures(batch) for batch in _batches(pictures))

    def _texts(self, texts: list[str]) -> Vectors:
        # All as long as the longest there can be: SigLIP is trained so, and a text's vector is that of it alone.
        tokens = self.tokenizer(
            [t[: CHARS_PER_TOKEN * self.max_tokens] for t in texts],
            padding="max_length", truncation=True, max_length=self.max_tokens, return_tensors="pt",
        )  # fmt: skip
        return _units(self.model.get_text_features, tokens)

    def _pictures(self, pictures: list["Image"]) -> Vectors:
        return _units(self.model.get_image_features, self.processor(images=pictures, return_tensors="pt"))


def load_aligner(name: str, root: Path, threads: int) -> Aligner:
    """Returns model `name` with its tokenizer and image processor.

    Raises:
      ConfigError: it does not bring texts and pictures into one space, or its tokenizer cannot pad.
      ToolError: it is not on this machine, or its tokenizer or image processor is missing.
    """
    models.use_threads(threads)
    model = models.load_two_towers(name, root)
    tokenizer, processor = models.load_tokenizer(name, root), models.load_image_processor(name, root)
    if tokenizer.pad_token is None:
        raise ConfigError("the tokenizer has no padding token", where=name, remedy="set one in tokenizer_config.json")
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", MAX_TEXT_TOKENS)
    return Aligner(model, tokenizer, processor, min(longest, tokenizer.model_max_length))


def cosines(texts: Vectors, pictures: Vectors, owners: Sequence[int]) -> npt.NDArray[np.float64]:
    """Returns (n,) the mean cosine of each text (n, d) with its pictures of (m, d); `owners` (m,): their texts."""
    sums, counts = np.zeros(len(texts)), np.zeros(len(texts))
    for picture, owner in zip(pictures.astype(np.float64), owners, strict=True):
        sums[owner] += texts[owner].astype(np.float64) @ picture
        counts[owner] += 1
    return np.asarray(np.divide(sums, counts, out=np.full(len(texts), np.nan), where=counts > 0))


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch


def _all(parts: Iterable[Vectors]) -> Vectors:
    found = list(parts)
    return np.concatenate(found) if found else np.zeros((0, 0), np.float32)


def _units(features: Callable[..., Tensor], inputs: Mapping[str, Tensor]) -> Vectors:
    """Returns the unit vectors (b, d) that `features` gives for `inputs`."""
    import torch

    with torch.inference_mode():
        found = features(**inputs)
        vectors = getattr(found, "pooler_output", found)
        return np.asarray(torch.nn.functional.normalize(vectors.float(), dim=-1).numpy(), np.float32)
