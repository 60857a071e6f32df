"""Compiled loops of the text dimensions: over characters, words and sentences, as `static_words` defines them."""

import numpy as np
import numpy.typing as npt

from scoring.core.jit import kernel

Points = npt.NDArray[np.uint32]
Classes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

# Bits of a character's class.
LETTER, UNSPACED, JOINER, SPACE = 1, 2, 4, 8  # of words; UNSPACED: a word by itself
TERMINAL, CLOSER, FULL, FULL_CLOSER = 16, 32, 64, 128  # of sentence ends
TRAILING = 256  # what may follow a terminal mark
MARKS = 9  # the first of four bits: comma, colon, aside, quotation
BREAK, DIGIT, UPPER = 1 << 13, 1 << 14, 1 << 15  # a line break; of the first character of a word

FIRST_SLOTS = 1 << 14
LINE_BREAK = 10
LOWER_A, LOWER_Z = 97, 122
MAX_BLANKS = 80  # between a line break and what follows it, for the break to end a sentence


@kernel
def word_end(points: Points, classes: Classes, start: int, end: int) -> int:
    """Returns where the word that begins at `start` ends, at most `end`."""
    if classes[points[start]] & UNSPACED:
        return start + 1
    k = start + 1
    while k < end:
        if classes[points[k]] & LETTER:
            k += 1
        elif classes[points[k]] & JOINER and k + 1 < end and classes[points[k + 1]] & LETTER:
            k += 2
        else:
            break
    return k


@kernel
def sentence_end(points: Points, classes: Classes, k: int, end: int) -> int:
    """Returns where a sentence ends that has its end mark at `k`, or −1 where there is none."""
    kind = classes[points[k]]
    if kind & TERMINAL:
        after = k + 2 if k + 1 < end and classes[points[k + 1]] & CLOSER else k + 1
        return after if after < end and classes[points[after]] & SPACE else -1
    if kind & FULL:
        after = k + 2 if k + 1 < end and classes[points[k + 1]] & FULL_CLOSER else k + 1
        return -1 if after < end and classes[points[after]] & (FULL | FULL_CLOSER) else after
    after = k + 1
    while after < end and classes[points[after]] & (SPACE | BREAK) == SPACE:
        after += 1
    if after >= end or after - k - 1 > MAX_BLANKS:
        return -1
    lower = LOWER_A <= points[after] <= LOWER_Z
    return -1 if lower else after


@kernel
def scan_sentence(points: Points, classes: Classes, k: int, end: int) -> tuple[int, int]:
    """Returns where the sentence that begins at `k` ends, and the classes of its characters, or-ed."""
    seen = 0
    while k < end:
        kind = classes[points[k]]
        seen |= kind
        if kind & (TERMINAL | FULL | BREAK):
            stop = sentence_end(points, classes, k, end)
            if stop >= 0:
                for j in range(k + 1, stop):
                    seen |= classes[points[j]]
                return stop, seen
        k += 1
    return end, seen


@kernel
def find_words(points: Points, ends: Ints, classes: Classes, max_words: int) -> tuple[Places, Places, Ints, Ints]:
    """Returns the words of each text, at most `max_words`: starts (m,), ends (m,), words per text (n,), and where each
    text's excerpt ends (n,): at its first word too many. `ends` (n,): where each text ends in `points`."""
    starts, stops = np.empty(len(points), np.int32), np.empty(len(points), np.int32)
    counts, cuts = np.zeros(len(ends), np.int64), ends.copy()
    found, k = 0, 0
    for text in range(len(ends)):
        end = ends[text]
        while k < end:
            if not classes[points[k]] & (LETTER | UNSPACED):
                k += 1
                continue
            if counts[text] == max_words:
                cuts[text] = k
                break
            starts[found] = k
            k = word_end(points, classes, k, end)
            stops[found] = k
            found += 1
            counts[text] += 1
        k = end
    return starts[:found].copy(), stops[:found].copy(), counts, cuts


@kernel
def find_sentences(
    points: Points, begins: Ints, cuts: Ints, classes: Classes, starts: Places, counts: Ints
) -> tuple[Ints, Ints, Points, Ints]:
    """Returns the sentences that hold a word: words (s,), classes of their characters or-ed (s,), the last character
    before what trails a terminal mark (s,), and sentences a text (n,)."""
    sizes, marks = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    lasts, per_text = np.zeros(len(starts), np.uint32), np.zeros(len(cuts), np.int64)
    found, word = 0, 0
    for text in range(len(cuts)):
        k, end, last_word = begins[text], cuts[text], word + counts[text]
        while k < end:
            k, seen = scan_sentence(points, classes, k, end)
            first_word = word
            while word < last_word and starts[word] < k:
                word += 1
            if word > first_word:
                last = k - 1
                while classes[points[last]] & TRAILING:  # it ends at a word's last letter at the latest
                    last -= 1
                sizes[found], marks[found], lasts[found] = word - first_word, seen, points[last]
                found += 1
                per_text[text] += 1
    return sizes[:found].copy(), marks[:found].copy(), lasts[:found].copy(), per_text


@kernel
def number_words(points: Points, starts: Places, stops: Places) -> tuple[Ints, Ints]:
    """Returns each word's number (m,), equal words alike, in the order of their first, and where that stands (v,)."""
    table, size = np.full(FIRST_SLOTS, -1, np.int32), FIRST_SLOTS
    numbers, firsts = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    hashes, count = np.empty(len(starts), np.uint64), 0
    for word in range(len(starts)):
        hashed = hash_word(points, starts[word], stops[word])
        slot = np.int64(hashed & np.uint64(size - 1))
        while table[slot] >= 0:
            known = table[slot]
            if hashes[known] == hashed and same(points, starts, stops, firsts[known], word):
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            firsts[count], hashes[count] = word, hashed
            count += 1
        numbers[word] = table[slot]
        if 2 * count > size:
            size *= 4
            table = slots(hashes[:count], size)
    return numbers, firsts[:count].copy()


@kernel
def join_words(points: Points, starts: Places, stops: Places) -> Points:
    """Returns the characters of words one behind another, a line break between two."""
    found, at = np.full(np.sum(stops - starts) + max(0, len(starts) - 1), LINE_BREAK, np.uint32), 0
    for word in range(len(starts)):
        for k in range(starts[word], stops[word]):
            found[at] = points[k]
            at += 1
        at += 1
    return found


@kernel
def slots(hashes: npt.NDArray[np.uint64], size: int) -> Places:
    """Returns a table (size,) of the numbers of words by their `hashes` (v,), −1 where none is."""
    table = np.full(size, -1, np.int32)
    for word in range(len(hashes)):
        slot = np.int64(hashes[word] & np.uint64(size - 1))
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = word
    return table


@kernel
def hash_word(points: Points, start: int, stop: int) -> int:
    """Returns FNV-1a over the code points of a word, mixed."""
    hashed = np.uint64(14695981039346656037)
    for k in range(start, stop):
        hashed = (hashed ^ np.uint64(points[k])) * np.uint64(1099511628211)
    return hashed ^ (hashed >> np.uint64(29))


@kernel
def same(points: Points, starts: Places, stops: Places, a: int, b: int) -> bool:
    """Returns whether words `a` and `b` are the same characters."""
    size = stops[a] - starts[a]
    if stops[b] - starts[b] != size:
        return False
    for k in range(size):  # noqa: SIM110 (compiled)
        if points[starts[a] + k] != points[starts[b] + k]:
            return False
    return True


@kernel
def count_marked(points: Points, sizes: Ints, marked: npt.NDArray[np.bool_]) -> Ints:
    """Returns how many of the characters of each text (n,) of `sizes` characters are `marked`."""
    found, k = np.zeros(len(sizes), np.int64), 0
    for text in range(len(sizes)):
        for _ in range(sizes[text]):
            found[text] += marked[points[k]]
            k += 1
    return found


@kernel
def factors(words: Ints, counts: Ints, vocabulary: int, threshold: float) -> npt.NDArray[np.float64]:
    """Returns (n, 2) the factors of MTLD of each text, forwards and backwards; `words` (m,) below `vocabulary`."""
    seen = np.zeros(vocabulary, np.int64)  # the last factor that held a word
    found = np.zeros((len(counts), 2))
    start, factor = 0, 0
    for text in range(len(counts)):
        for way in range(2):
            factor += 1
            full, count, types = 0, 0, 0
            for k in range(counts[text]):
                word = words[start + k] if way == 0 else words[start + counts[text] - 1 - k]
                count += 1
                if seen[word] != factor:
                    seen[word] = factor
                    types += 1
                if types < threshold * count:
                    full += 1
                    factor += 1
                    count, types = 0, 0
            rest = (1.0 - types / count) / (1.0 - threshold) if count else 0.0
            found[text, way] = full + rest
        start += counts[text]
    return found


@kernel
def windows(sentence_words: Ints, text_sentences: Ints, least: int, most: int) -> tuple[Ints, Ints]:
    """Returns the words of each window (w,) and windows per text (n,), as `static_words.window_sizes` has them."""
    sizes = np.empty(sentence_words.sum() // least + 2 * len(text_sentences) + 1, np.int64)
    counts = np.zeros(len(text_sentences), np.int64)
    found, sentence = 0, 0
    for text in range(len(text_sentences)):
        before, size = found, 0
        for _ in range(text_sentences[text]):
            size += sentence_words[sentence]
            sentence += 1
            while size > most:
                sizes[found] = most
                found += 1
                size -= most
            if size >= least:
                sizes[found] = size
                found += 1
                size = 0
        if found > before and size < least // 2:
            sizes[found - 1] += size
        elif size:
            sizes[found] = size
            found += 1
        counts[text] = found - before
    return sizes[:found].copy(), counts
