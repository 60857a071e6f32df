"""LQS of the rows outside the proxy sample, predicted from the columns of earlier stages."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.lqs import distill
from scoring.lqs.distill import Bools, Distilled, Floats
from scoring.static.dimensions import DIMENSIONS
from transforms.core import parts
from transforms.core.parts import Reads, all_kept
from transforms.gradients.notes import NOT_SAMPLED

READS: Reads = {"quality": ["embedding"], "tokens": ["text_tokens"], "static": DIMENSIONS}

_OTHERS = len(DIMENSIONS) + 1  # features beside the embedding


def with_features(reads: Reads) -> Reads:
    """Returns `reads` and the columns that `features` needs."""
    return {f: [*reads.get(f, ()), *READS.get(f, ())] for f in {**reads, **READS}}


def outside(batch: pa.RecordBatch) -> Bools:
    """Returns (n,) which kept rows have no gradients because the proxy sample left them out."""
    left_out = pc.fill_null(pc.equal(batch["gradients.gradient_note"], NOT_SAMPLED), False)
    return np.asarray(pc.and_(all_kept(batch), left_out).to_numpy(zero_copy_only=False), bool)


def embedding_width(batch: pa.RecordBatch) -> int:
    """Returns the length of the first embedding in `batch`; 0 where there is none."""
    lengths = pc.list_value_length(batch["quality.embedding"]).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else 0


def features(batch: pa.RecordBatch, width: int) -> Floats:
    """Returns (n, width + 13): embedding, static dimensions and log text tokens, NaN for missing values."""
    dimensions = [parts.floats(batch[f"static.{name}"]) for name in DIMENSIONS]
    length = np.log1p(parts.floats(batch["tokens.text_tokens"]))
    return distill.feature_matrix(batch["quality.embedding"], width, [*dimensions, length])


def predicted(batch: pa.RecordBatch, scorer: Distilled) -> Floats:
    """Returns (n,) what `scorer` makes of the kept rows outside the proxy sample; NaN for any other row."""
    rows = outside(batch)
    found = np.full(batch.num_rows, np.nan)
    if rows.any():
        found[rows] = scorer.predict(features(batch.filter(pa.array(rows)), len(scorer.scaling.means) - _OTHERS))
    return found
