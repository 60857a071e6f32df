"""Personal data: found, and replaced by pseudonyms that depend on the value and a secret key alone.

A kernel marks the few windows in which something may begin; the patterns and checks of `pii_patterns` look at
nothing else. A pseudonym, e.g. `<EMAIL_kqtbdfml>`, is eight consonants of a keyed BLAKE2b: no detector can match
them, they spell no word, and a tokenizer cuts them into few pieces.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter, itemgetter

import numpy as np
import pyarrow as pa

from scoring.core.errors import ConfigError
from transforms.text.pii import checks as pii_checks
from transforms.text.pii import patterns as pii_patterns
from transforms.text.pii.config import _MIN_KEY, KINDS, Kind, PiiConfig
from transforms.text.pii.patterns import DETECTORS, Detector, Hit
from transforms.text.pii.scan import Skeletons

SPAN = pa.struct([("kind", pa.string()), ("start", pa.int32()), ("end", pa.int32())])
_CONSONANTS = "bcdfghjklmnpqrst"
_MAX_ROUNDS = 8  # of detection in text that was just redacted; nothing seen needs more than two


@dataclass(frozen=True)
class Redacted:
    """Texts, and by row what was found in them.

    `spans` are list<struct<kind, start, end>>: character offsets into `texts`, in order. `counts` has int32 by kind.
    Both are null where the text is, and everywhere if nothing was looked for.
    """

    texts: pa.LargeStringArray
    spans: pa.ListArray
    counts: Mapping[Kind, pa.Int32Array]


def secret_key(config: PiiConfig) -> bytes:
    """Returns the key of the pseudonyms, 32 bytes.

    Raises:
      ConfigError: the variable that `key_env` names is not set, or too short.
    """
    key = config.key if config.key_env is None else os.environ.get(config.key_env, "")
    if len(key) < _MIN_KEY:
        raise ConfigError(
            f"the environment variable {config.key_env} holds no key of at least {_MIN_KEY} characters",
            where="clean.pii.key_env",
            remedy="set it on every worker, or set key_env to null and provide `key`",
        )
    return blake2b(key.encode(), digest_size=32).digest()


def key_check(config: PiiConfig) -> str:
    """Returns what tells two keys apart and tells nothing else of them; for fingerprints. Errors as `secret_key`."""
    return blake2b(b"", digest_size=8, key=secret_key(config), person=b"check").hexdigest()


def pseudonym(kind: Kind, value: bytes, key: bytes) -> str:
    """Returns the pseudonym of the canonical `value` of `kind`."""
    digest = blake2b(value, digest_size=4, key=key, person=kind.encode()).digest()
    letters = (_CONSONANTS[half] for byte in digest for half in (byte >> 4, byte & 15))
    return f"<{kind.upper()}_{''.join(letters)}>"


def redact(texts: pa.LargeStringArray, config: PiiConfig) -> Redacted:
    """Returns `texts` without what `config` looks for, and the spans of the replacements.

    Redacting twice changes nothing, and no result depends on any other row. Errors as `secret_key`.
    """
    if config.mode == "off":
        return _nothing(texts)
    if config.mode == "detect":
        return _gathered(texts, {row: _spans(hits) for row, hits in find(texts, config).items()}, config)
    key, rows, spans = secret_key(config), np.arange(len(texts)), dict[int, list[_Span]]()
    current, changed = texts, dict[int, str]()
    for _ in range(_MAX_ROUNDS):
        found = find(current, config)
        for at, hits in found.items():
            row = int(rows[at])
            changed[row], spans[row] = _replaced(current[at].as_py(), hits, spans.get(row, []), key)
        rows = rows[list(found)]
        if not len(rows):
            break
        current = pa.array([changed[int(row)] for row in rows], pa.large_string())
    return _gathered(_with(texts, changed), spans, config)


_Span = tuple[Kind, int, int]


def find(texts: pa.LargeStringArray, config: PiiConfig) -> dict[int, list[Hit]]:
    """Returns, by row with any, its findings in order; their positions are character offsets."""
    skeletons = Skeletons(texts)
    windows = skeletons.windows()
    found: dict[int, list[Hit]] = {}
    wanted = [d for d in DETECTORS if d.kind in config.kinds]
    for row, group in groupby(zip(*(column.tolist() for column in windows), strict=True), key=itemgetter(0)):
        spans: dict[int, list[tuple[int, int]]] = {}
        for _, kind, start, stop in group:
            spans.setdefault(kind, []).append((start, stop))
        hits = detect(skeletons.row(row), wanted, spans, config)
        if hits:
            found[row] = [_moved(hit, skeletons, row) for hit in hits]
    return found


def detect(
    skeleton: bytearray,
    wanted: Sequence[Detector],
    spans: Mapping[int, Sequence[tuple[int, int]]],
    config: PiiConfig,
) -> list[Hit]:
    """Returns what begins in the `spans` of its detector's group, in order; masks it in `skeleton`."""
    found: list[Hit] = []
    for detector in wanted:
        for hit in pii_patterns.hits(detector, skeleton, spans.get(detector.group, ())):
            if hit.kind == "ip" and not config.private_ips and pii_checks.is_private(hit.value):
                continue
            skeleton[hit.start : hit.stop] = b"<".ljust(hit.stop - hit.start, b">")
            found.append(hit)
    return sorted(found, key=attrgetter("start"))


def _moved(hit: Hit, skeletons: Skeletons, row: int) -> Hit:
    """Returns `hit` with character offsets for skeleton positions."""
    start, stop = skeletons.char(row, hit.start), skeletons.char(row, hit.stop - 1) + 1
    return Hit(start, stop, hit.kind, hit.value)


def _spans(hits: Sequence[Hit]) -> list[_Span]:
    return [(hit.kind, hit.start, hit.stop) for hit in hits]


def _replaced(text: str, hits: Sequence[Hit], before: Sequence[_Span], key: bytes) -> tuple[str, list[_Span]]:
    """Returns `text` with pseudonyms for `hits`, and all spans: the new ones, and of `before` those not covered."""
    pieces: list[str] = []
    spans: list[_Span] = []
    at, length, old = 0, 0, 0
    for hit in [*hits, None]:
        start = hit.start if hit else len(text)
        while old < len(before) and before[old][2] <= start:
            kind, first, last = before[old]
            if first >= at:
                spans.append((kind, first - at + length, last - at + length))
            old += 1
        pieces.append(text[at:start])
        length += start - at
        if hit:
            name = pseudonym(hit.kind, hit.value, key)
            pieces.append(name)
            spans.append((hit.kind, length, length + len(name)))
            at, length = hit.stop, length + len(name)
            while old < len(before) and before[old][1] < at:
                old += 1
    return "".join(pieces), spans


def _with(texts: pa.LargeStringArray, changed: Mapping[int, str]) -> pa.LargeStringArray:
    if not changed:
        return texts
    import pyarrow.compute as pc

    mask = np.zeros(len(texts), bool)
    mask[list(changed)] = True
    return pc.replace_with_mask(
        texts, pa.array(mask), pa.array([changed[row] for row in sorted(changed)], pa.large_string())
    )


def _gathered(texts: pa.LargeStringArray, spans: Mapping[int, Sequence[_Span]], config: PiiConfig) -> Redacted:
    null = texts.is_null().to_numpy(zero_copy_only=False)
    sizes, counts = np.zeros(len(texts), np.int32), {kind: np.zeros(len(texts), np.int32) for kind in KINDS}
    for row, found in spans.items():
        sizes[row] = len(found)
        for kind, _, _ in found:
            counts[kind][row] += 1
    flat = [span for row in sorted(spans) for span in spans[row]]
    columns = [[span[k] for span in flat] for k in range(3)]
    values = pa.StructArray.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SPAN, strict=True)], fields=list(SPAN)
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values, mask=pa.array(null))
    return Redacted(
        texts,
        lists,
        {
            kind: pa.array(counts[kind], pa.int32(), mask=null if kind in config.kinds else np.ones(len(texts), bool))
            for kind in KINDS
        },
    )


def _nothing(texts: pa.LargeStringArray) -> Redacted:
    empty = pa.nulls(len(texts), pa.int32())
    return Redacted(texts, pa.nulls(len(texts), pa.list_(SPAN)), dict.fromkeys(KINDS, empty))
