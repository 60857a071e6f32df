"""Which rows a normal form would change, and which may hold mojibake: one pass over Arrow's bytes."""

import re
import unicodedata
from functools import cache
from importlib.metadata import version
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from scoring.core.table_cache import kept
from transforms.text.chars import point

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]

NOT_NORMAL = 1  # flags of `triage`
SUSPECT = 2

_TABLE_END = 0x30000  # no code point above has a decomposition, a combining class or a part in a composition
MAX_MARKS = 30
_CHANGES = 255  # in the form table: always for the slow path


class Tables(NamedTuple):
    """What `triage` looks up by code point."""

    form: Bytes  # combining class, or _CHANGES
    group: Bytes  # (0x10000,) row of `first` and `second`
    first: Masks  # bit k: may begin pair k of _pairs
    second: Masks


@cache
def tables(form: Literal["NFC", "NFKC"], unclean: re.Pattern[str], *, mojibake: bool) -> Tables:
    """Returns the tables of Unicode form `form`; no clean text holds a character that `unclean` matches."""
    return Tables(_form(form, unclean.pattern), *(_groups(version("ftfy")) if mojibake else _no_groups()))


@kept
def _form(form: Literal["NFC", "NFKC"], unclean: str) -> Bytes:
    chars = [chr(c) for c in range(_TABLE_END)]
    found = np.fromiter(map(unicodedata.combining, chars), np.uint8, _TABLE_END)
    odd = {*"".join(re.findall(unclean, "".join(chars))), *_joiners()}
    changed = (c in odd or not unicodedata.is_normalized(form, c) for c in chars)
    found[np.fromiter(changed, bool, _TABLE_END)] = _CHANGES
    return found


def _joiners() -> set[str]:
    """Returns every character that may compose with the one before it (Quick_Check=Maybe)."""
    found = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))}  # Hangul vowels and finals
    for code in range(_TABLE_END):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(chr(int(parts[1], 16)))
    return found


def _no_groups() -> tuple[Bytes, Masks, Masks]:
    return np.zeros(0x10000, np.uint8), np.zeros(1, np.uint32), np.zeros(1, np.uint32)


@kept
def _groups(ftfy: str) -> tuple[Bytes, Masks, Masks]:
    """Returns the code points of Unicode's first plane, grouped by the pairs of version `ftfy` that they are in."""
    del ftfy  # tells kept tables apart
    plane = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
    masks = np.zeros((0x10000, 2), np.uint32)
    for bit, pair in enumerate(_pairs()):
        for side, chars in enumerate(pair):
            masks[[ord(c) for c in re.findall(f"[{chars}]", plane)], side] |= np.uint32(1 << bit)
    rows, group = np.unique(masks, axis=0, return_inverse=True)
    return group.reshape(-1).astype(np.uint8), rows[:, 0].copy(), rows[:, 1].copy()


def _pairs() -> list[tuple[str, str]]:
    """Returns two neighbours that every match of each alternative of ftfy's heuristic holds, as classes of `re`.

    The first is never ASCII. Whatever `ftfy.badness.is_bad` calls mojibake holds such a pair, or a C1 control.
    """
    from ftfy.badness import MOJIBAKE_CATEGORIES as C

    accented, ends = C["lower_accented"] + C["upper_accented"], C["start_punctuation"] + C["end_punctuation"]
    signs = accented + C["box"] + ends + C["currency"] + C["numeric"] + C["law"]
    solid = C["box"] + C["end_punctuation"] + C["currency"] + C["numeric"]
    return [
        (signs + C["bad"] + C["lower_common"] + C["upper_common"], C["bad"]),
        (C["bad"], signs),
        (solid + C["lower_accented"] + C["lower_common"], C["upper_accented"]),
        (solid, C["lower_accented"]),
        (accented + C["box"] + C["end_punctuation"], C["currency"]),
        (C["upper_accented"] + C["box"], C["numeric"] + C["law"] + "°"),
        (accented + C["box"] + C["currency"] + ends + C["numeric"], C["start_punctuation"]),
        (accented + C["box"], ends),
        (C["box"], C["kaomoji"]),
        (accented + ends + C["currency"] + C["numeric"] + C["law"], C["box"]),
        ("Œœ", "^A-Za-z"),
        ("ÂÃÎÐ", "€œŠš¢£Ÿž\xa0\xad®©°·»–—´ " + ends),
        ("×", "²³"),
        ("ØÙ", C["common"] + C["currency"] + C["bad"] + C["numeric"] + C["start_punctuation"] + "ŸŠ®°µ»"),
        ("à", "²µ¹¼½¾"),
        ("√", "±∂†≠®™´≤≥¥µø"),
        ("≈", "°¢"),
        ("‚", "Äâó"),
        ("в", "Ђ"),
        ("ВГРС", C["bad"] + ends + C["currency"] + "°µ"),
        ("Г", "ў"),
        ("βā", "€"),
        ("ΒΓΞΟ", C["bad"] + ends + C["currency"] + "°"),
    ]


@kernel
def triage(
    data: Bytes, offsets: Offsets, valid: Array, form: Bytes, group: Bytes, first: Masks, second: Masks
) -> Bytes:
    """Returns (rows,) flags: NOT_NORMAL where the normal form may differ, SUSPECT where ftfy may see mojibake."""
    flags = np.zeros(len(offsets) - 1, np.uint8)
    for row in range(len(flags)):
        if valid[row]:
            flags[row] = _flags(data, offsets[row], offsets[row + 1], form, group, first, second)
    return flags


@kernel
def _flags(data: Bytes, at: int, stop: int, form: Bytes, group: Bytes, first: Masks, second: Masks) -> int:
    flag, before, last, marks = 0, np.uint32(0), 0, 0
    while at < stop:
        if data[at] < 0x80:
            if before & second[group[data[at]]]:
                flag |= SUSPECT
            before, last, marks = np.uint32(0), 0, 0
            at, changes = _ascii(data, at, stop, form)
            flag |= changes
            continue
        char, at = point(data, at)
        kind = np.int64(form[char]) if char < _TABLE_END else 0
        marks = marks + 1 if kind else 0
        if kind == _CHANGES or (kind and kind < last) or marks > MAX_MARKS:
            flag |= NOT_NORMAL
        last = kind
        kin = group[char] if char < 0x10000 else 0
        if before & second[kin] or char < 0xA0:  # C1 controls are suspect alone
            flag |= SUSPECT
        before = first[kin]
    return flag


@kernel
def _ascii(data: Bytes, at: int, stop: int, form: Bytes) -> tuple[int, int]:
    """Returns where a run of ASCII ends, and NOT_NORMAL if it holds a control character."""
    odd = 0
    while at < stop and data[at] < 0x80:
        odd |= form[data[at]]
        at += 1
    return at, NOT_NORMAL if odd else 0
