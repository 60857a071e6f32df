"""The reference: a small causal transformer, trained here on the kept corpus, with its checkpoints."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scoring.core import files
from scoring.core.errors import ConfigError
from scoring.gradients.losses import padded, row_losses
from scoring.models.config import MIN_TOKENS
from scoring.models.encoding import read_as_text
from scoring.models.types import Model, Tensor, Tokenizer
from scoring.reference.config import ReferenceConfig
from scoring.reference.muon import Muon

Chunks = Sequence[Sequence[int]]  # of one text: pieces of at most `context` tokens


_PAD, _EOS = "<|pad|>", "<|eos|>"
_HELDOUT_EVERY = 16
_WARMUP_RATIO = 0.1
_FINAL_RATIO = 0.1  # of the learning rate, at the end of the cosine
_MAX_GRAD_NORM = 1.0
_CURVE_POINTS = 50
_EVALUATION_TOKENS = 4096


def split(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns `texts` (two or more) to train on, and every sixteenth, beginning with the first, held out."""
    held = [n % _HELDOUT_EVERY == 0 for n in range(len(texts))]
    return [t for t, h in zip(texts, held, strict=True) if not h], [t for t, h in zip(texts, held, strict=True) if h]


def train_tokenizer(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """Returns a byte-level BPE tokenizer of at most `vocabulary` tokens: the same for the same texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_PAD, _EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    found = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=_PAD, eos_token=_EOS)
    read_as_text(found.backend_tokenizer)
    return found


def new_model(config: ReferenceConfig, tokenizer: Tokenizer) -> Model:
    """Returns an untrained Llama of the sizes of `config`, its weights drawn from the seed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        intermediate_size=8 * -(-config.width // 3),  # 8/3 · width: SwiGLU (Shazeer 2020) as Llama has it
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return LlamaForCausalLM(sizes)


def chunks(tokenizer: Tokenizer, texts: Sequence[str], context: int) -> list[Chunks]:
    """Returns the tokens of each text and an end token, in pieces of `context`; texts of no token are left out."""
    found: list[Chunks] = []
    for record in tokenizer.backend_tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
        ids = [*record.ids, tokenizer.eos_token_id]
        pieces = [ids[k : k + context] for k in range(0, len(ids), context)]
        found.append([p for p in pieces if len(p) >= MIN_TOKENS])
    return [pieces for pieces in found if pieces]


def batches(texts: Sequence[Chunks], config: ReferenceConfig) -> Iterator[list[Sequence[int]]]:
    """Yields `steps` batches: every epoch takes the texts in a new seeded order, and the next piece of each."""
    import numpy as np

    batch: list[Sequence[int]] = []
    steps = epoch = 0
    while True:
        for n in np.random.default_rng([config.seed, epoch]).permutation(len(texts)):
            batch.append(texts[n][epoch % len(texts[n])])
            if len(batch) == config.batch_rows:
                yield batch
                batch, steps = [], steps + 1
            if steps == config.steps:
                return
        epoch += 1


def train(model: Model, texts: Sequence[Chunks], config: ReferenceConfig) -> Iterator[float]:
    """Yields the training loss of each step, after the step: linear warm-up, cosine decay.

    The matrices of the blocks are trained by Muon, what is left by AdamW.

    Raises:
      ConfigError: the loss is no longer a number.
    """
    import torch

    matrices, others = _split(model)
    muon = Muon(matrices)
    optimizer = torch.optim.AdamW(others, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    for step, batch in enumerate(batches(texts, config)):
        ids, lengths = padded(batch)
        weights = (lengths - 1) / (lengths - 1).sum()
        loss = (row_losses(model, ids, lengths) * weights).sum()  # the mean over the batch's tokens
        model.zero_grad()
        loss.backward()
        if not loss.isfinite():
            raise ConfigError(
                f"training diverged: the loss is {loss.item()}",
                where=f"reference.learning_rate: {config.learning_rate}, muon_rate: {config.muon_rate}",
                remedy="lower these learning rates",
            )
        torch.nn.utils.clip_grad_norm_(model.parameters(), _MAX_GRAD_NORM)
        share = _rate(step, config.steps)
        optimizer.param_groups[0]["lr"] = config.learning_rate * share
        optimizer.step()
        muon.step(config.muon_rate * share)
        yield loss.item()


def _split(model: Model) -> tuple[list[Tensor], list[Tensor]]:
    """Returns the matrices of the transformer blocks, and all other parameters."""
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    known = set(matrices)
    return matrices, [p for p in model.parameters() if p not in known]


def _rate(step: int, steps: int) -> float:
    """Returns the share of the learning rate at `step`."""
    import math

    warmup = max(1, round(steps * _WARMUP_RATIO))
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return _FINAL_RATIO + (1 - _FINAL_RATIO) * 0.5 * (1 + math.cos(math.pi * progress))


def mean_loss(model: Model, texts: Sequence[Chunks]) -> float:
    """Returns the mean loss of the first piece of each text."""
    import torch

    rows = [pieces[0] for pieces in texts]
    size = max(1, _EVALUATION_TOKENS // max(map(len, rows)))
    with torch.no_grad():
        found = [row_losses(model, *padded(rows[k : k + size])) for k in range(0, len(rows), size)]
    return float(torch.cat(found).double().mean().item())


def curve(losses: Sequence[float]) -> list[list[float]]:
    """Returns at most 50 points [step, mean loss since the point before] of a training curve."""
    size = -(-len(losses) // _CURVE_POINTS) or 1
    spans = [losses[k : k + size] for k in range(0, len(losses), size)]
    return [[min((n + 1) * size, len(losses)), round(sum(s) / len(s), 6)] for n, s in enumerate(spans)]


@contextmanager
def deterministic() -> Iterator[None]:
    """Makes torch refuse any operation that is not the same at every run, inside the block."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def save_checkpoint(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Writes `folder` whole or not at all: a model folder that transformers loads by its path.

    Raises:
      DataError: the disk is full or the folder cannot be written.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=files.TEMPORARY, dir=folder.parent))
    try:
        logging.disable_progress_bar()
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        temporary.chmod(0o755)
        for path in [*temporary.iterdir(), temporary]:
            files.sync(path)
        os.rename(temporary, folder)
        files.sync(folder.parent)
    except (OSError, SafetensorError) as error:
        raise files.cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
