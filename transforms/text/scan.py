"""Kernels that walk the UTF-8 bytes of one text: its tokens, its lines, their hashes.

A text is `data[start:stop]`, uint8. Tokens are those of `transforms.text.words`. Equality is that of 64-bit
hashes: in a text of a million distinct words two of them collide with probability 3e-8.
Two other places define a word otherwise, on purpose: docs/decisions/013-three-words.md.
"""

from typing import NamedTuple

import numpy as np

from scoring.core.arrays import Array
from scoring.core.jit import kernel
from transforms.text.chars import characters, few_characters, hashed, point
from transforms.text.tables import (
    ALPHA,
    DIGIT,
    JOIN,
    MARK,
    POINT,
    RUN,
    SPACE,
    SYMBOL,
    TERMINAL,
    UNSPACED,
    WORD,
    byte_classes,
    classes,
)

OUTSIDE = 1  # the token has a character outside the punctuation set: it belongs to W′
ALPHABETIC = 2
ALONE = 4  # a letter of a script without spaces
ENDS = 8  # the token is one mark that ends sentences

_NEWLINE = 10

_NO_CUTS = np.zeros(0, np.int64)


class Sheet(NamedTuple):
    """Scratch of one text, used again for the next: what is known of its tokens and lines."""

    hashes: Array  # (t,) uint64, by token
    lengths: Array  # (t,) int32: characters
    flags: Array  # (t,) uint8
    places: Array  # (t,) int64: first byte
    codes: Array  # (t,) int32: equal for equal tokens, or pieces
    counts: Array  # (t,) int32, by code
    known: Array  # (t,) uint64: hash by code
    slots: Array  # int32: hash table
    at: Array  # (t,) int32: where repeated n-grams begin
    ids: Array  # (t,) int32
    tallies: Array  # (t,) int32, by id
    pairs: Array  # (t,) uint64, by id
    seen: Array  # (t,) uint8, by id
    ends: Array  # (t + 1,) int64: characters before each token
    starts: Array  # (t,) int64: first byte of each line
    stops: Array  # (t,) int64
    keys: Array  # (t,) uint64: hash of each line
    chars: Array  # (t,) int32
    piece_keys: Array  # (t,) uint64: hash of lines or paragraphs that are compared
    piece_chars: Array  # (t,) int32


def sheet(size: int) -> Sheet:
    """Returns a sheet for texts of up to `size` tokens and as many lines."""
    kinds = {
        "lengths": np.int32, "flags": np.uint8, "places": np.int64, "codes": np.int32, "counts": np.int32,
        "at": np.int32, "ids": np.int32, "tallies": np.int32, "seen": np.uint8, "ends": np.int64, "starts": np.int64,
        "stops": np.int64, "chars": np.int32, "piece_chars": np.int32, "slots": np.int32,
    }  # fmt: skip
    sizes = {"ends": size + 1, "slots": 1 << (2 * max(size, 8) - 1).bit_length()}
    return Sheet(*(np.empty(sizes.get(name, size), kinds.get(name, np.uint64)) for name in Sheet._fields))


@kernel
def word_end(data: Array, at: int, stop: int, table: Array, kind: int) -> tuple[int, int]:
    """Returns (end, flags of all its characters) of the word whose first is of `kind` and whose next is at `at`."""
    flags = kind
    while at < stop:
        char, after = point(data, at)
        found = np.int64(table[char])
        if found & WORD:
            flags, kind, at = flags | found, found, after
            continue
        if after >= stop or not (found & JOIN or (found & POINT and kind & DIGIT)):
            break
        inner, beyond = point(data, after)
        follows = np.int64(table[inner])
        if not follows & WORD or not (found & JOIN or follows & DIGIT):
            break
        flags, kind, at = flags | follows, follows, beyond
    return at, flags


@kernel
def sign_end(data: Array, at: int, stop: int, table: Array, first: int, kind: int) -> tuple[int, int]:
    """Returns (end, where its marks begin) of a symbol's run or an unspaced letter, `first`, whose next is at `at`."""
    while kind & RUN and at < stop:
        char, after = point(data, at)
        if char != first:
            break
        at = after
    marks = at
    while at < stop:
        char, after = point(data, at)
        if not table[char] & MARK:
            break
        at = after
    return at, marks


@kernel
def cut_end(data: Array, at: int, stop: int, table: Array, cuts: Array) -> int:
    """Returns where the unspaced word at `at` ends: at the next of `cuts`, ascending, or where the letters do."""
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if cuts[middle] <= at else (low, middle)
    limit = min(stop, cuts[low]) if low < len(cuts) else stop
    while at < limit:
        char, after = point(data, at)
        if not table[char] & (UNSPACED | MARK):
            break
        at = after
    return at


@kernel
def token_end(data: Array, at: int, stop: int, table: Array, cuts: Array) -> tuple[int, int, int]:
    """Returns (end, flags of its characters, 1 if it has marks of its own) of the token at `at`."""
    char, after = point(data, at)
    kind = np.int64(table[char])
    if kind & UNSPACED and len(cuts):
        return cut_end(data, at, stop, table, cuts), kind, 0
    if kind & WORD:
        end, seen = word_end(data, after, stop, table, kind)
        return end, seen, 0
    end, marks = sign_end(data, after, stop, table, char, kind)
    return end, kind if end == after else kind & ~TERMINAL, np.int64(end > marks)


@kernel
def token_flags(seen: int, marked: int) -> int:
    """Returns the flags of a token from those of its characters; `TERMINAL` only if it is one character.

    Shifts, not branches: whether the next token is a word or a sign cannot be foreseen.
    """
    outside = ((seen & WORD) >> 1) | ((~seen & SYMBOL) >> 4) | marked
    alone = ((seen & UNSPACED) >> 1) & ~((seen & WORD) << 1)
    return outside | ((seen & ALPHA) >> 4) | alone | ((seen & TERMINAL) >> 7)


@kernel
def tokens(data: Array, start: int, stop: int, table: Array, narrow: Array, cuts: Array, sheet: Sheet) -> int:
    """Fills hash, characters, flags and first byte of every token of a text; returns how many there are.

    `cuts` are the bytes, ascending, at which words of scripts without spaces begin; without any, each letter is
    a word. Returns -1 where the sheet is too small.
    """
    hashes, lengths, flags, places = sheet.hashes, sheet.lengths, sheet.flags, sheet.places
    count, at = 0, start
    while at < stop:
        found = narrow[data[at]]
        if found & SPACE:
            at += 1
            continue
        # ASCII words and single signs are nearly all there is: they are read here, a call would cost a quarter more
        end, seen, marked = at + 1, np.int64(found), 0
        if found & WORD:
            while end < stop:
                found = narrow[data[end]]
                if not found & WORD:
                    break
                seen |= found
                end += 1
            if end < stop and (found & JOIN or (found & POINT and narrow[data[end - 1]] & DIGIT)):
                end = -1
        elif data[at] >= 0x80 or (end < stop and (data[end] >= 0x80 or data[end] == data[at])):
            end = -1
        length = end - at
        if end < 0:
            char, after = point(data, at)
            if table[char] & SPACE:
                at = after
                continue
            end, seen, marked = token_end(data, at, stop, table, cuts)
            length = few_characters(data, at, end)
        if count == len(hashes):
            return -1
        hashes[count], lengths[count], places[count] = hashed(data, at, end), length, at
        flags[count] = token_flags(seen, marked)
        count += 1
        at = end
    return count


@kernel
def table_size(count: int) -> int:
    """Returns the power of two that holds `count` keys at no more than half its slots."""
    size = 16
    while size < 2 * count:
        size *= 2
    return size


@kernel
def intern(keys: Array, count: int, sheet: Sheet) -> int:
    """Fills the code of each of `count` uint64 keys, and by code its count and key; returns how many differ.

    Codes count up in order of first occurrence.
    """
    codes, counts, known, slots = sheet.codes, sheet.counts, sheet.known, sheet.slots
    size = table_size(count)
    slots[:size] = 0
    mask, distinct = size - 1, 0
    for k in range(count):
        key = keys[k]
        slot = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(mask))
        while slots[slot] and known[slots[slot] - 1] != key:
            slot = (slot + 1) & mask
        code = slots[slot] - 1
        if code < 0:
            code = distinct
            distinct += 1
            slots[slot], known[code], counts[code] = code + 1, key, 0
        counts[code] += 1
        codes[k] = code
    return distinct


@kernel
def lines(data: Array, start: int, stop: int, sheet: Sheet) -> int:
    """Fills first and last byte, hash and characters of each line that is not empty; returns how many there are.

    Returns -1 where the sheet is too small.
    """
    starts, stops, keys, chars = sheet.starts, sheet.stops, sheet.keys, sheet.chars
    count, begin = 0, start
    for at in range(start, stop + 1):
        if at < stop and data[at] != _NEWLINE:
            continue
        if at > begin:
            if count == len(starts):
                return -1
            starts[count], stops[count] = begin, at
            keys[count], chars[count] = hashed(data, begin, at), characters(data, begin, at)
            count += 1
        begin = at + 1
    return count


@kernel
def repeats(count: int, sheet: Sheet, first_too: int) -> tuple[int, int]:
    """Returns (pieces that repeat, their characters): those after the first, or with `first_too` all copies."""
    again, chars = 0, 0
    distinct = intern(sheet.piece_keys, count, sheet)
    codes, counts, seen, lengths = sheet.codes, sheet.counts, sheet.seen, sheet.piece_chars
    seen[:distinct] = 0
    for k in range(count):
        if counts[codes[k]] > 1 and (first_too or seen[codes[k]]):
            again += 1
            chars += lengths[k]
        seen[codes[k]] = 1
    return again, chars


def split(text: str, cuts: Array = _NO_CUTS) -> list[str]:
    """Returns W, the tokens of `text` in order; their characters are all of `text` but its spaces."""
    encoded = text.encode()
    work = sheet(len(encoded) + 1)
    view = np.frombuffer(encoded, np.uint8)
    count = tokens(view, 0, len(encoded), classes(), byte_classes(), cuts, work)
    places, lengths = work.places[:count].tolist(), work.lengths[:count].tolist()
    return [encoded[at : at + 4 * n].decode(errors="ignore")[:n] for at, n in zip(places, lengths, strict=True)]


def token_hashes(text: str) -> Array:
    """Returns the hash of each token of `text`, (w,) uint64."""
    data = np.frombuffer(text.encode(), np.uint8)
    work = sheet(len(data) + 1)
    return work.hashes[: tokens(data, 0, len(data), classes(), byte_classes(), _NO_CUTS, work)].copy()
