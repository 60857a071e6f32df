"""Every schema and column name.

A folder under `data/` holds parts; a part has the schema of its folder. All sidecars begin with
`sample_id`. A column read for a stage is named `folder.column` (see `parts.read_columns`).
"""

from pathlib import Path

import pyarrow as pa

from scoring.core.errors import SchemaError
from scoring.static.dimensions import DIMENSIONS
from transforms.core.features import IMAGE, with_features

# Measured beside the dimensions, of pictures and videos; they have no weight in the static score.
STATIC_READINGS = ("visual_learnability", "frame_ssim", "alignment")

_SAMPLE_FIELDS = [
    ("sample_id", pa.string()),
    ("source", pa.string()),
    ("uri", pa.string()),
    ("source_digest", pa.string()),
    ("position", pa.int64()),
    ("segment", pa.int32()),
    ("modality", pa.string()),
    ("text", pa.large_string()),
    ("images", pa.list_(IMAGE)),
    ("image_times_s", pa.list_(pa.float64())),
    ("audio", IMAGE),
    ("width", pa.int32()),
    ("height", pa.int32()),
    ("duration_s", pa.float64()),
    ("frames", pa.int32()),
    ("has_audio", pa.bool_()),
    ("codec", pa.string()),
    ("label", pa.string()),
    ("domain", pa.string()),
    ("repaired_chars", pa.int32()),
    ("meta", pa.string()),
]

_VERDICT = [("kept", pa.bool_()), ("reasons", pa.list_(pa.string()))]


SAMPLES = with_features(pa.schema(_SAMPLE_FIELDS))

REJECTS = pa.schema(
    [
        ("sample_id", pa.string()),  # null unless the row's own id is the fault
        ("source", pa.string()),
        ("uri", pa.string()),
        ("source_digest", pa.string()),
        ("position", pa.int64()),
        ("stage", pa.string()),
        ("reason", pa.string()),
        ("error", pa.string()),
        ("tail", pa.string()),  # the decoder's last words
        ("excerpt", pa.large_string()),  # the first 2 kB of what could not be read
        ("partial", pa.bool_()),  # true: what could be decoded is a row of samples
    ]
)

CLEAN_COUNTS = (
    "chars", "words", "lines",
    "nonsymbol_words", "stop_words",
    "c4_sentences", "c4_lorem_ipsum_lines", "c4_brace_lines", "c4_long_word_lines", "c4_open_lines", "c4_short_lines",
    "c4_script_lines", "c4_policy_lines", "c4_citations",
)  # fmt: skip
CLEAN_RATIOS = (
    "mean_word_length", "hash_ratio", "ellipsis_ratio", "bullet_line_ratio", "ellipsis_line_ratio", "alpha_word_ratio",
    "dup_line_ratio", "dup_paragraph_ratio", "dup_line_char_ratio", "dup_paragraph_char_ratio",
    *(f"top_{n}_gram_char_ratio" for n in (2, 3, 4)),
    *(f"dup_{n}_gram_char_ratio" for n in range(5, 11)),
    "line_end_ratio", "short_line_ratio", "line_repeat_char_ratio", "newline_word_ratio",
)  # fmt: skip
# Rules of a file of their own: named here, not imported, so that a new one leaves the stages before `clean` alone.
CLEAN_EXTRA = tuple(sorted(f"extra_{p.stem}" for p in Path(__file__).parent.parent.glob("text/extra/[!_]*.py")))
SPAN = pa.struct([("kind", pa.string()), ("start", pa.int32()), ("end", pa.int32())])
SHARE = pa.struct([("language", pa.string()), ("ratio", pa.float32())])

CLEAN = pa.schema(
    [
        ("sample_id", pa.string()),
        ("clean_text", pa.large_string()),
        ("c4_text", pa.large_string()),  # what C4's rules leave of clean_text; null where that is all of it
        ("key_hash", pa.binary(16)),  # of the key text and the payloads; null where both are empty
        ("mojibake_fixes", pa.int32()),
        ("controls_removed", pa.int32()),
        ("boilerplate_lines", pa.int32()),  # lines that repeat over the source
        ("language", pa.string()),
        ("language_score", pa.float64()),
        ("languages", pa.list_(SHARE)),  # of the characters, by paragraph; largest first
        ("mixed_language", pa.bool_()),
        ("pii", pa.list_(SPAN)),  # character offsets into clean_text
        ("pii_count", pa.int32()),
        *((name, pa.int64()) for name in CLEAN_COUNTS),
        *((name, pa.float64()) for name in CLEAN_RATIOS),
        ("benchmark_item", pa.string()),  # benchmark:row of the item that overlaps most; null if none does
        ("benchmark_overlap", pa.float64()),  # share of that item's distinct n-grams that the text has
        ("benchmark_ngrams", pa.int32()),  # how many those are
        ("benchmark_word_ratio", pa.float64()),  # share of the text's words in n-grams of any item
        *((name, pa.float64()) for name in CLEAN_EXTRA),
        ("rule_quality", pa.float64()),  # share of the rules that the row passes
        *_VERDICT,
    ]
)

DEDUP = pa.schema(
    [
        ("sample_id", pa.string()),
        ("cluster", pa.string()),  # sample_id of the cluster's survivor; null for a row dropped before
        ("survivor", pa.bool_()),
        ("matched_id", pa.string()),  # the survivor, for a row dropped here
        ("similarity", pa.float64()),
        *_VERDICT,
    ]
)

DEDUP_LINES = pa.schema(
    [
        ("sample_id", pa.string()),
        ("corpus_dup_line_ratio", pa.float64()),  # share of characters in lines that another kept row contains too
        ("corpus_dup_paragraph_ratio", pa.float64()),
    ]
)

QUALITY = pa.schema(
    [
        ("sample_id", pa.string()),
        ("quality", pa.float64()),  # null for a row without text, or dropped before
        ("model_quality", pa.float64()),  # what the model alone says
        ("quality_min", pa.float64()),
        ("quality_max", pa.float64()),
        ("window_scores", pa.list_(pa.float64())),  # of the model, in the order of the text
        ("windows", pa.int32()),
        ("coverage", pa.float64()),  # scored tokens / all tokens
        ("quality_label", pa.string()),
        ("embedding", pa.list_(pa.int8())),  # its direction, the largest entry 127; null without a fitted head
        *_VERDICT,
    ]
)

# One row a judged text, not a sample.
LABELS_FILE = "quality/labels.parquet"
LABELS = pa.schema(
    [
        ("text_id", pa.string()),
        ("sample_id", pa.string()),  # of the sample with the same clean text; null if there is none
        ("excerpt", pa.large_string()),
        ("label", pa.string()),  # of the majority: good or bad; null on a tie
        ("judgements", pa.int32()),
        ("annotators", pa.int32()),  # null where not all are named
        ("vote_entropy", pa.float64()),  # bits, of good against bad
        ("quality", pa.float64()),  # by a head that has not learned from the row; null if all have
        ("cluster", pa.int32()),
        ("cluster_entropy", pa.float64()),  # bits, of the labels in the cluster
        ("outlier", pa.float64()),  # distance to the cluster's centre over the median one
        ("neighbours", pa.float64()),  # share of the nearest rows with the same label
        ("reasons", pa.list_(pa.string())),  # to look at the row again
        ("priority", pa.float64()),  # in [0, 3]
    ]
)

_TOKEN_COUNTS = [
    ("sample_id", pa.string()),
    ("text_tokens", pa.int64()),
    ("image_tokens", pa.int64()),
    ("video_tokens", pa.int64()),
    ("audio_tokens", pa.int64()),
    ("tokens", pa.int64()),
    ("flops", pa.float64()),
    ("bytes", pa.int64()),  # decoded size of the row in the samples part
]
TOKENS_RAW = pa.schema(_TOKEN_COUNTS)
TOKENS = pa.schema([*_TOKEN_COUNTS, ("complexity", pa.float64())])

# Of one part, not of its rows: how often each token occurs in the excerpts. The empty word: all overlong ones.
TOKEN_COUNTS = pa.schema([("kind", pa.string()), ("token", pa.string()), ("count", pa.int64())])

_DIMENSIONS = [("sample_id", pa.string()), *((d, pa.float64()) for d in DIMENSIONS)]
STATIC_RAW = pa.schema([*_DIMENSIONS, *((r, pa.float64()) for r in STATIC_READINGS)])
STATIC = pa.schema([*_DIMENSIONS, ("static_score", pa.float64())])

GRADIENTS = pa.schema(
    [
        ("sample_id", pa.string()),
        ("gradient_tokens", pa.int32()),
        ("gradient_mode", pa.string()),  # exact, last_layers or sketch
        ("order_gain", pa.float64()),  # nats per token that the order of its words saves, at the last checkpoint
        # one value per checkpoint, in training order
        ("loss", pa.list_(pa.float64())),
        ("grad_norm", pa.list_(pa.float64())),
        ("target_cosine", pa.list_(pa.float64())),  # with the target's mean gradient at the same checkpoint
        ("costate_dot", pa.list_(pa.float64())),  # with the costate of the next checkpoint; the last is null
        ("costate_cosine", pa.list_(pa.float64())),
        ("gradient_note", pa.string()),  # why there are no values, or null
    ]
)

SKETCHES = pa.schema(
    [
        ("sample_id", pa.string()),
        ("sketch", pa.list_(pa.binary())),  # int8 values of the gradient's sketch, one a kept checkpoint
        ("sketch_scale", pa.list_(pa.float32())),  # what they are multiplied by
    ]
)

LQS = pa.schema(
    [
        ("sample_id", pa.string()),
        ("learnability", pa.float64()),
        ("gradient_quality", pa.float64()),
        ("lqs", pa.float64()),
        ("lqs_z", pa.float64()),  # z-scored, clipped at 3
        ("score", pa.float64()),  # final
        ("band", pa.string()),  # difficulty: base, reinforcement, challenge
        ("high_value", pa.bool_()),
        ("score_note", pa.string()),
    ]
)

PLAN = pa.schema(
    [
        ("rank", pa.int64()),
        ("sample_id", pa.string()),
        ("part", pa.string()),
        ("row", pa.int32()),
        ("shard", pa.int32()),
        ("position", pa.int32()),
        ("phase", pa.int32()),
        ("band", pa.string()),
        ("pool", pa.string()),
        ("tier", pa.string()),
        ("tokens", pa.int64()),
        ("flops", pa.float64()),
        ("bytes", pa.int64()),
        ("score", pa.float64()),
    ]
)

SHARDS = with_features(
    pa.schema(
        [
            *_SAMPLE_FIELDS,
            ("language", pa.string()),
            ("quality", pa.float64()),
            ("static_score", pa.float64()),
            ("lqs", pa.float64()),
            ("score", pa.float64()),
            ("band", pa.string()),
            ("tokens", pa.int64()),
            ("flops", pa.float64()),
        ]
    )
)

# Folders of parts, in the order in which their stages run.
PARTS: dict[str, pa.Schema] = {
    "samples": SAMPLES,
    "rejects": REJECTS,
    "clean": CLEAN,
    "dedup": DEDUP,
    "dedup/lines": DEDUP_LINES,
    "quality": QUALITY,
    "tokens/raw": TOKENS_RAW,
    "tokens": TOKENS,
    "gradients": GRADIENTS,
    "gradients/sketches": SKETCHES,
    "static/raw": STATIC_RAW,
    "static": STATIC,
    "lqs": LQS,
}


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns `batch` with exactly the columns and types of `schema`, in its order.

    Raises:
      SchemaError: a column is missing, unknown, or cannot be cast without loss.
    """
    missing = [n for n in schema.names if n not in batch.schema.names]
    unknown = [n for n in batch.schema.names if n not in schema.names]
    if missing or unknown:
        raise SchemaError(
            f"columns do not match the schema: missing {missing}, unknown {unknown}",
            remedy="declare the column in transforms/core/schemas.py or remove it",
        )
    try:
        columns = [batch.column(f.name).cast(f.type) for f in schema]
    except pa.ArrowInvalid as error:
        raise SchemaError(f"a column cannot be cast to its declared type: {error}") from error
    return pa.record_batch(columns, schema=schema)
