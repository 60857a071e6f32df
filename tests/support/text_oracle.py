"""The text rules once more, character by character and word by word: slow, obvious, independent."""

import unicodedata

from hypothesis import settings
from hypothesis import strategies as st

FIRST_IS_SLOW = settings(deadline=None)  # the first call builds the character classes

INVISIBLE = "\u00ad\u200c\u200d\u2060"
UNSPACED_NAMES = (
    "CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR",
    "IDEOGRAPHIC", "VERTICAL KANA", "VERTICAL IDEOGRAPHIC", "HANGZHOU", "MASU",
)  # fmt: skip
RUNNING = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~…—–。！？，、·•"

# Letters of many scripts, marks, digits, signs, spaces, and what a normal form must deal with.
ALPHABET = (
    "abcXYZé İßﬁΣσ0127٣५๓①²½.,'’_-‐‑#…•!?()+*=~$€<>|&@/\\\"。，！？—–·、 \t\n\n\u00a0\u3000\u200b\u200c\u200d\u00ad"
    "\u2060\r\x0b\x0c\x85\u2028\u2029\x00\x1b\x1d\ufeff\u200e\u202e\u2067\ufffd\u0300\u0301\u0316\u0344\u034f\u0308\ufe0f\u20e3"
    "कखिी्ंनม ่ี้าเแกขລາວခမြန်ខែរ漢字汉々〇ひらガｶﾞー가각한\u1100\u1161\u11a8العَرבְ\u0591Ωй𝐀𐐀𠀀😀👍🏽❤"
)
TEXTS = st.one_of(st.text(st.sampled_from(ALPHABET), max_size=60), st.text(max_size=40))
_WORDS = st.sampled_from(["a", "bb", "the", "of", "x1", "It's", "汉", "字", "-", "•", "...", "…", "#", ".", "!", "कि"])
_GAPS = st.sampled_from([" ", " ", " ", "\n", "\n\n", "\n\n\n", "", "\t"])
PAGES = st.lists(st.tuples(_WORDS, _GAPS), max_size=70).map(lambda pairs: "".join(w + g for w, g in pairs))


def kind(char: str) -> str:
    """Returns what a character is to the tokenizer."""
    if char.isspace() or char == "\u200b":
        return "space"
    if unicodedata.category(char).startswith("M") or char in INVISIBLE:
        return "mark"
    if char.isalnum():
        return "unspaced" if unicodedata.name(char, "").startswith(UNSPACED_NAMES) else "letter"
    return "symbol"


def tokens(text: str) -> list[str]:
    """Returns W."""
    found: list[str] = []
    at = 0
    while at < len(text):
        what = kind(text[at])
        if what == "space":
            at += 1
            continue
        end = word_end(text, at) if what in ("letter", "mark") else sign_end(text, at, what)
        found.append(text[at:end])
        at = end
    return found


def sign_end(text: str, at: int, what: str) -> int:
    """Returns where an unspaced letter or a run of one symbol ends, with its marks."""
    end = at + 1
    while what == "symbol" and text[at] in RUNNING and end < len(text) and text[end] == text[at]:
        end += 1
    while end < len(text) and kind(text[end]) == "mark":
        end += 1
    return end


def word_end(text: str, at: int) -> int:
    """Returns where a word of a spaced script ends."""
    while at < len(text):
        if kind(text[at]) in ("letter", "mark"):
            at += 1
        elif at + 1 < len(text) and kind(text[at + 1]) in ("letter", "mark") and joins(text, at):
            at += 2
        else:
            break
    return at


def joins(text: str, at: int) -> bool:
    """Returns whether a sign between two letters belongs to the word."""
    numeric = text[at] in ".," and text[at - 1].isdecimal() and text[at + 1].isdecimal()
    return text[at] in "'’_-‐‑" or numeric


def is_punctuation(char: str) -> bool:
    """Returns whether `char` is in the punctuation set."""
    ascii_symbol = "!" <= char <= "~" and not char.isalnum()
    return unicodedata.category(char).startswith("P") or ascii_symbol or char in "´∶►"


def ratio(part: float, whole: float) -> float:
    """Returns part / whole, 0 over an empty whole."""
    return part / whole if whole else 0.0


def repeats(items: list[str]) -> tuple[float, int]:
    """Returns the share of items that an earlier one equals, and their characters."""
    again = [item for k, item in enumerate(items) if item in items[:k]]
    return ratio(len(again), len(items)), sum(map(len, again))


def split_paragraphs(bare: str) -> list[str]:
    """Returns what two or more newlines part."""
    while "\n\n\n" in bare:
        bare = bare.replace("\n\n\n", "\n\n")
    return bare.split("\n\n")


def grams(every: list[str], n: int) -> list[tuple[str, ...]]:
    """Returns all runs of n words."""
    return [tuple(every[k : k + n]) for k in range(len(every) - n + 1)]


def top(every: list[str], n: int) -> int:
    """Returns length with spaces × count of the most frequent n-gram, the first of those that tie."""
    found = grams(every, n)
    if not found:
        return 0
    most = max(found.count(gram) for gram in found)
    first = next(gram for gram in found if found.count(gram) == most)
    return len(" ".join(first)) * most


def greedy(every: list[str], n: int) -> int:
    """Returns the characters of repeats in a scan that jumps over each."""
    seen: list[tuple[str, ...]] = []
    chars = at = 0
    while at + n <= len(every):
        gram = tuple(every[at : at + n])
        if gram in seen:
            chars += len("".join(gram))
            at += n
        else:
            seen.append(gram)
            at += 1
    return chars
