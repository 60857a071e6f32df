"""Texts to token ids, and windows of ids through a transformer in batches."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from scoring.models import windows
from scoring.models.types import Backend, Encoding, Model, Tensor, Tokenizer

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Forward = Callable[[Tensor, Tensor], Tensor]  # ids (b, t), mask (b, t) → values (b, k)

PIECE_CHARS = 100_000
_BATCH_CHARS = 2_000_000  # of one call: bounds the memory of the tokenizer's own records


def read_as_text(backend: Backend) -> None:
    """Lets `backend` encode whole texts, and special tokens that are spelled out in one (`[SEP]`) as text."""
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = True


def pieces(text: str, limit: int = PIECE_CHARS) -> list[str]:
    """Returns `text` in pieces of at most `limit` characters, cut before a space where there is one.

    A space begins a token in nearly every tokenizer, so the pieces' tokens are the text's tokens; a
    cut without a space can change one token.
    """
    found, start = [], 0
    while len(text) - start > limit:
        cut = text.rfind(" ", start + 1, start + limit + 1)
        end = cut if cut > start else start + limit
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[Encoding]]:
    """Yields, for each text, the records of its pieces."""
    backend, batch, chars = tokenizer.backend_tokenizer, list[list[str]](), 0
    for text in texts:
        batch.append(pieces(text))
        chars += len(text)
        if chars > _BATCH_CHARS:
            yield from _encode_batch(backend, batch)
            batch, chars = [], 0
    yield from _encode_batch(backend, batch)


def _encode_batch(backend: Backend, batch: list[list[str]]) -> Iterator[list[Encoding]]:
    flat = backend.encode_batch_fast([p for text in batch for p in text], add_special_tokens=False)
    position = 0
    for text in batch:
        yield flat[position : position + len(text)]
        position += len(text)


def token_counts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """Returns the number of tokens of each text, special tokens not counted."""
    return [sum(len(record) for record in records) for records in _encoded(tokenizer, texts)]


def token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Ints]:
    """Yields (n,) int32 token ids of each text, without special tokens and without a bound on n."""
    for records in _encoded(tokenizer, texts):
        yield np.concatenate([np.asarray(record.ids, np.int32) for record in records])


def frame(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Returns the ids of the special tokens that the model expects before and after a sequence."""
    backend = tokenizer.backend_tokenizer
    bare = backend.encode("a", add_special_tokens=False).ids
    whole = backend.encode("a", add_special_tokens=True).ids
    start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
    return whole[:start], whole[start + len(bare) :]


def max_window(tokenizer: Tokenizer, model: Model) -> int:
    """Returns how many tokens of text the model can take at once, special tokens deducted."""
    before, after = frame(tokenizer)
    config = model.config
    positions = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    offset = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0  # positions count from there
    return int(min(positions - offset, tokenizer.model_max_length)) - len(before) - len(after)


def run_batched(
    forward: Callable[[Tensor, Tensor], Tensor], tokenizer: Tokenizer, found: Sequence[Ints], batch_tokens: int
) -> Floats:
    """Returns (n, k) float32: `forward(ids (b, t), mask (b, t)) -> (b, k)` of every window, in their order.

    Windows of similar length go together, `batch_tokens` padded tokens at a time.
    """
    import torch

    before, after = frame(tokenizer)
    rows = np.zeros((0, 0), np.float32)
    lengths = np.array([len(window) for window in found], np.int64) + len(before) + len(after)
    for batch in windows.batches(lengths.tolist(), batch_tokens):
        framed = [np.concatenate([before, found[i], after]) for i in batch]
        ids, mask = _padded(framed, lengths[batch], tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            values = forward(torch.from_numpy(ids), torch.from_numpy(mask)).float().numpy()
        if not rows.size:
            rows = np.empty((len(found), values.shape[1]), np.float32)
        rows[batch] = values
    return rows


def _padded(rows: Sequence[npt.NDArray[np.integer]], lengths: Longs, pad: int) -> tuple[Longs, Longs]:
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask.astype(np.int64)


def embed(model: Model, tokenizer: Tokenizer, found: Sequence[Ints], batch_tokens: int) -> Floats:
    """Returns (n, d) float32 unit vectors: the mean of each window's hidden states, its padding masked out.

    The pooling of Sentence-BERT (Reimers and Gurevych 2019) as all-MiniLM-L6-v2's model card has it.
    """
    return run_batched(partial(mean_pooled, model), tokenizer, found, batch_tokens)


def mean_pooled(model: Model, ids: Tensor, mask: Tensor) -> Tensor:
    """Returns (b, d) unit vectors of (b, t) token ids: the mean of the hidden states where `mask` (b, t) is 1."""
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * weights).sum(1) / weights.sum(1)
    return mean / mean.norm(dim=1, keepdim=True).clamp_min(1e-12)


def classify(model: Model, tokenizer: Tokenizer, found: Sequence[Ints], batch_tokens: int) -> Floats:
    """Returns (n, k) float32 probabilities of the labels of a sequence classifier; a regression's value, (n, 1).

    The labels of a multi-label classifier each have a probability of their own.
    """
    regression = model.config.num_labels == 1
    if getattr(model.config, "pad_token_id", None) is None:
        model.config.pad_token_id = tokenizer.pad_token_id or 0  # decoders look for the last token before the padding

    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        logits = model(input_ids=ids, attention_mask=mask).logits.float()
        if regression:
            return logits
        return logits.sigmoid() if is_multi_label(model) else logits.softmax(-1)

    return run_batched(forward, tokenizer, found, batch_tokens)


def is_multi_label(model: Model) -> bool:
    """Returns whether the labels of a classifier do not exclude each other, as its config says."""
    return getattr(model.config, "problem_type", None) == "multi_label_classification"
