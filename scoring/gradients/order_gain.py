"""How much word order helps a language model: nats per token lost when the words are shuffled.

    order gain = loss(words in a seeded random order) − loss

The loss of a text mixes what it is about with whether it makes sense; its words in another order are about the
same things, so the difference is sense. It is near 0 for shuffled words and for letters at random, whose tokens
predict nothing in any order, where the plain loss calls rare words bad and a repeated sentence good
(docs/scoring.md has the figures). A word is a run of tokens that the tokenizer cut from one word; in a script
without spaces, where such runs are long, it is a token.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scoring.gradients.losses import Objective, Row, batch_losses, batches
from scoring.models.types import Model

Words = Sequence[int | None]  # the number of the word that each token of a row belongs to

MAX_TOKENS_A_WORD = 4  # on average; longer ones are runs of a script without spaces


def shuffled(row: Row, words: Words) -> list[int]:
    """Returns the tokens of `row`, its words in a random order that depends on its length only.

    Special tokens, which belong to no word, stay where they are.
    """
    starts = [n for n in range(len(row)) if n == 0 or words[n] is None or words[n] != words[n - 1]]
    if len(row) > MAX_TOKENS_A_WORD * len(starts):
        starts = list(range(len(row)))
    pieces = [row[start:end] for start, end in pairwise([*starts, len(row)])]
    free = [k for k, start in enumerate(starts) if words[start] is not None]
    mixed = list(pieces)
    for place, source in zip(free, np.random.default_rng(len(row)).permutation(free).tolist(), strict=True):
        mixed[place] = pieces[source]
    return [token for piece in mixed for token in piece]


def order_gains(
    model: Model, rows: Sequence[Row], words: Sequence[Words], loss: npt.NDArray[np.float64], *, batch_tokens: int,
    objective: Objective,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Returns (n,) the order gain of `rows`, whose losses (n,) on `model` are known; 0 where nothing is predicted."""
    mixed = [shuffled(row, w) for row, w in zip(rows, words, strict=True)]
    return losses(model, mixed, batch_tokens=batch_tokens, objective=objective) - loss


def losses(model: Model, rows: Sequence[Row], *, batch_tokens: int, objective: Objective) -> npt.NDArray[np.float64]:
    """Returns (n,) the loss of each row, by a forward pass alone; 0 where nothing is predicted."""
    import torch

    found = np.zeros(len(rows))
    with torch.no_grad():
        for picked, batch in batches(model, rows, batch_tokens, objective):
            found[picked] = batch_losses(model, batch).double().cpu().numpy()
    return found
