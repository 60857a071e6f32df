"""The key that duplicates share: lower case, numbers 0, punctuation and space one space.

`key_text` says what a key is; `key_texts` gives the same keys for whole arrays, by a kernel over their bytes.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scoring.core.arrays import Array
from transforms.text import words
from transforms.text.keys import kernels as key_kernel
from transforms.text.keys import tables as key_tables
from transforms.text.normal.normalize import normalize
from transforms.text.utf8 import buffers

Payloads = Sequence[bytes]  # what tells the media of one row apart from other media


@cache
def _numbers(limit: int) -> re.Pattern[str]:
    """Returns what becomes `0`: a digit run that no letter touches."""
    letter = f"[{words.spaced_class(limit)}]"
    return re.compile(rf"\d(?<!{letter}.)\d*+(?!{letter})", re.DOTALL)


@cache
def _gaps(limit: int) -> re.Pattern[str]:
    """Returns what becomes a space, but for the `+` and `#` of `_LOOSE`."""
    points = {*map(ord, words.punctuation() - set("+#")), 0x200B}
    gap = words.char_class(c for c in points if c < limit)
    return re.compile(f"[{gap}][{gap}]*+")


_LOOSE = re.compile(r"[+#](?:(?<![\w+#].)[+#]*+|[+#]*+(?=\w))", re.DOTALL)  # all but those that end a word


def _lowered(text: str) -> str:
    return normalize(text.lower().replace("\u00ad", ""), "NFC")


def key_text(text: str) -> str:
    """Returns what `text` shares with its duplicates: lower case, numbers 0, punctuation and space one space.

    Distinct words never share a key: combining marks stay, punctuation inside a word leaves a gap (`can't` is
    not `cant`), digits that are part of a word are no number (`mp3` is not `mp4`), and a `+` or `#` that ends
    a word is part of it (`C++` is not `C`). Soft hyphens are dropped. The result is NFC.
    """
    lowered = _lowered(text)
    limit = words.limit(lowered)
    spaced = _gaps(limit).sub(" ", _LOOSE.sub(" ", _numbers(limit).sub("0", lowered)))
    return " ".join(spaced.split())


def key_texts(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Returns the `key_text` of each text; of a null, the empty key."""
    texts = pc.fill_null(texts, "")
    keys, odd = _write(texts, key_tables.lower(), strict=True)
    if not odd.any():
        return keys
    mask = pa.array(odd)
    lowered = pa.array(map(_lowered, texts.filter(mask).to_pylist()), pa.large_string())
    return pc.replace_with_mask(keys, mask, _write(lowered, key_tables.itself(), strict=False)[0])


def _write(texts: pa.LargeStringArray, lower: Array, *, strict: bool) -> tuple[pa.LargeStringArray, Array]:
    """Returns the keys of texts, and (n,) bool: which were too odd to have one."""
    data, offsets, _ = buffers(texts)
    out = np.empty(3 * int(offsets[-1] - offsets[0]) // 2 + 1, np.uint8)
    ends, odd = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), np.bool_)
    tables = (key_tables.simple(), lower, key_tables.properties())
    key_kernel.write_keys(data, offsets, *tables, strict, out, ends, odd)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])), odd


def key_hashes(texts: pa.LargeStringArray, payloads: Iterable[Payloads]) -> pa.FixedSizeBinaryArray:
    """Returns the 16-byte hash of the key of each text and of the row's payloads; null where there is neither."""
    keys, rows = key_texts(texts), list(payloads)
    out = np.empty((len(keys), 2), np.uint64)
    key_kernel.hash_keys(*buffers(keys)[:2], out)
    null = pc.equal(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False)
    for k, row in enumerate(rows):
        if row:
            out[k], null[k] = _with_media(keys[k].as_py(), row), False
    hashes = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(keys), [None, pa.py_buffer(out)])
    return pc.if_else(pa.array(null), None, hashes)


def _with_media(key: str, payloads: Payloads) -> Array:
    """Returns (2,) uint64; the count of digests goes in, so that no text can pass for a payload."""
    digests = [hashlib.blake2b(payload, digest_size=16).digest() for payload in payloads]
    salt = len(digests).to_bytes(8, "little")
    return np.frombuffer(hashlib.blake2b(b"".join(digests) + key.encode(), digest_size=16, salt=salt).digest(), "<u8")


def key_hash(text: str | None, payloads: Iterable[bytes]) -> bytes | None:
    """Returns the `key_hashes` of one row."""
    found: bytes | None = key_hashes(pa.array([text], pa.large_string()), [list(payloads)])[0].as_py()
    return found
