"""Normal forms of a text: the clean text that every later stage reads, and the key that duplicates share."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal

from transforms.text import words

Form = Literal["NFC", "NFKC"]

# Patterns begin with a plain character class: then `re` skips to the first match several times faster.
_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_STARTER = "\u034f"  # combining grapheme joiner: invisible, ends a run of marks
_MAX_MARKS = 30


def normalize(text: str, form: Form) -> str:
    """Returns `text` in Unicode form `form`, with `\\n` as the only line end and no invisible controls.

    Control characters but `\\n` and `\\t`, bidi controls and U+FEFF are removed; U+FFFD stays, as a trace of
    damage. Runs of more than 30 combining marks are broken by U+034F (Stream-Safe Text Format, UAX #15 §13):
    ordering an unbroken run takes quadratic time. Normalising twice changes nothing.
    """
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", text))
    if text.isascii():
        return text
    once = unicodedata.normalize(form, _stream_safe(text))
    return unicodedata.normalize(form, _stream_safe(once))


@cache
def _mark_runs(limit: int) -> re.Pattern[str]:
    nonstarters = (c for c in range(limit) if unicodedata.combining(chr(c)))
    mark = f"[{words.char_class(nonstarters)}]"
    return re.compile(f"{mark}{mark}{{{_MAX_MARKS - 1}}}(?={mark})")


def _stream_safe(text: str) -> str:
    return _mark_runs(words.limit(text)).sub(rf"\g<0>{_STARTER}", text)


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


def key_text(text: str) -> str:
    """Returns what `text` shares with its duplicates: lower case, numbers 0, punctuation and space one space.

    Distinct words never share a key: combining marks stay, punctuation inside a word leaves a gap (`can't` is
    not `cant`), digits that are part of a word are no number (`mp3` is not `mp4`), and a `+` or `#` that ends
    a word is part of it (`C++` is not `C`). Soft hyphens are dropped. The result is NFC.
    """
    lowered = normalize(text.lower().replace("\u00ad", ""), "NFC")
    limit = words.limit(lowered)
    spaced = _gaps(limit).sub(" ", _LOOSE.sub(" ", _numbers(limit).sub("0", lowered)))
    return " ".join(spaced.split())


def key_hash(text: str | None, payloads: Iterable[bytes]) -> bytes | None:
    """Returns the 16-byte hash of the key of `text` and of `payloads` in order; None if there is nothing to hash."""
    key = key_text(text) if text else ""
    digests = [hashlib.blake2b(payload, digest_size=16).digest() for payload in payloads]
    if not key and not digests:
        return None
    return hashlib.blake2b(b"".join(digests) + key.encode(), digest_size=16, salt=_count(digests)).digest()


def _count(digests: list[bytes]) -> bytes:
    """Returns how many digests stand before the text, so that no text can pass for a payload."""
    return len(digests).to_bytes(8, "little")
