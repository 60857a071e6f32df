import json
import unicodedata
from pathlib import Path

import ftfy
import pyarrow as pa
import pytest
from ftfy.badness import MOJIBAKE_CATEGORIES, is_bad
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import ALPHABET, FIRST_IS_SLOW, TEXTS

from transforms.text import utf8
from transforms.text.normal import normalize_kernel
from transforms.text.normal.config import NormalizeConfig
from transforms.text.normal.normalize import _UNCLEAN, normalize, normalize_batch

PLAIN = NormalizeConfig(unicode_form="NFC", fix_mojibake=False)
FIXING = NormalizeConfig(unicode_form="NFC", fix_mojibake=True)

ENCODINGS = ("latin-1", "sloppy-windows-1252", "sloppy-windows-1251", "sloppy-windows-1253", "macroman", "cp437")
SIGNS = "".join(chr(c) for c in range(0x80, 0x2600) if any(chr(c) in v for v in MOJIBAKE_CATEGORIES.values()))
GARBLE = st.text(
    st.sampled_from(SIGNS + "ÂÃÄâãäàáßéøœŒØÙαβΒΓвГВС€™ \n aZ°1\x80\x93\x85\ufffd\u0303\u200e"), max_size=12
)
BROKEN = st.builds(
    lambda text, encoding, around: around + text.encode().decode(encoding, "replace") + around,
    st.text(st.sampled_from("é–—’“”…€àü中文🙂 Жя\u00a0ab\n"), max_size=8),
    st.sampled_from(ENCODINGS),
    st.sampled_from(["", "a ", "中", "\n"]),
)


def large(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def fixed(text: str) -> str:
    """Returns what ftfy makes of `text` with all but its repair of encodings switched off."""
    off = ("unescape_html", "remove_terminal_escapes", "fix_latin_ligatures", "fix_character_width", "uncurl_quotes",
           "fix_line_breaks", "fix_surrogates", "remove_control_chars")  # fmt: skip
    return ftfy.fix_text(text, normalization=None, **dict.fromkeys(off, False))


def settled(text: str) -> str:
    for _ in range(8):
        before, text = text, normalize(fixed(text), "NFC")
        if text == before:
            break
    return text


@FIRST_IS_SLOW
@given(st.lists(st.none() | TEXTS, max_size=5), st.sampled_from(["NFC", "NFKC"]))
def test_batches_agree_with_the_plain_function(texts: list[str | None], form: str) -> None:
    found = normalize_batch(large(texts), NormalizeConfig(unicode_form=form, fix_mojibake=False))
    assert found.texts.to_pylist() == [None if t is None else normalize(t, form) for t in texts]
    assert found.mojibake_fixes.to_pylist() == [None if t is None else 0 for t in texts]


@FIRST_IS_SLOW
@given(st.lists(st.one_of(GARBLE, BROKEN, st.text(st.sampled_from(ALPHABET + "ÃÂâ€™œ"), max_size=20)), max_size=4))
def test_repair_agrees_with_ftfy_and_is_a_fixed_point(texts: list[str]) -> None:
    found = normalize_batch(large(texts), FIXING)
    assert found.texts.to_pylist() == [settled(t) for t in texts]
    again = normalize_batch(found.texts, FIXING)
    assert again.texts == found.texts
    assert again.mojibake_fixes.to_pylist() == again.controls_removed.to_pylist() == [0] * len(texts)


@FIRST_IS_SLOW
@given(GARBLE)
def test_whatever_ftfy_calls_bad_is_suspect(text: str) -> None:
    tables = normalize_kernel.tables("NFC", _UNCLEAN, mojibake=True)
    flags = normalize_kernel.triage(*utf8.buffers(large([text])), *tables)
    assert flags[0] & normalize_kernel.SUSPECT or not is_bad(text)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_every_code_point_that_changes_alone_or_with_its_neighbour_is_seen(form: str) -> None:
    chars = [chr(c) for c in (*range(0xD800), *range(0xE000, 0x32000), *range(0xE0000, 0xE0200), 0x10FFFF)]
    tables = normalize_kernel.tables(form, _UNCLEAN, mojibake=False)
    flags = normalize_kernel.triage(*utf8.buffers(large(chars)), *tables)
    changed = [normalize(c, form) != c for c in chars]
    assert not [c for c, was, flag in zip(chars, changed, flags, strict=True) if was and not flag]
    split = [unicodedata.normalize("NFD", c) for c in chars if len(unicodedata.normalize("NFD", c)) > 1]
    flags = normalize_kernel.triage(*utf8.buffers(large(split)), *tables)
    assert not [s for s, flag in zip(split, flags, strict=True) if normalize(s, form) != s and not flag]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("thatâ€™s it", "that’s it"),
        ("voilÃ le travail", "voilà le travail"),
        ("sÃ³ \x93x\x94", "só “x”"),
        ("company\x92s", "company’s"),
        ("RUF MICH ZURÃœCK", "RUF MICH ZURÜCK"),
        ("æ–‡å­—", "文字"),
        ("中文 and thatâ€™s it", "中文 and that’s it"),
        ("l’humanitÃ©\nété", "l’humanité\nété"),
    ],
)
def test_mojibake_is_undone(text: str, clean: str) -> None:
    found = normalize_batch(large([text, "x"]), FIXING)
    assert found.texts.to_pylist() == [clean, "x"]
    assert found.mojibake_fixes.to_pylist() == [1, 0]


@pytest.mark.parametrize(
    "text",
    ["“Curly” ‘quotes’ — and… ﬁ", "ÂME, Ãlvares? Île, œuvre, Œ", "naïve café «déjà vu»", "10 € ± 5 °C × ²", "АВГ «Я»",
     "&amp; &lt;b&gt;", "ｆｕｌｌ　ｗｉｄｔｈ", "Ὀδυσσεύς β€", "São João à la «é»", "┌──┐│x│"],
)  # fmt: skip
def test_good_text_stays(text: str) -> None:
    assert normalize_batch(large([text]), FIXING).texts.to_pylist() == [text]


def test_controls_are_counted_and_new_lines_are_not() -> None:
    found = normalize_batch(large(["a\r\nb\x00\x1b\u202ec\ufeff", "\n\t", None, "e\u0301"]), PLAIN)
    assert found.texts.to_pylist() == ["a\nbc", "\n\t", None, "é"]
    assert found.controls_removed.to_pylist() == [4, 0, None, 0]


def test_clean_texts_are_not_copied() -> None:
    texts = large(["plain", "汉字。", "été", "हिन्दी", None, ""])
    assert normalize_batch(texts, FIXING).texts is texts


@pytest.mark.parametrize("texts", [[], [None], [None, None], [""], ["x"]])
def test_small_batches(texts: list[str | None]) -> None:
    assert normalize_batch(large(texts), FIXING).texts.to_pylist() == texts
    assert len(normalize_batch(large(texts), FIXING).controls_removed) == len(texts)


def test_slices_and_bytes_under_nulls_are_honoured() -> None:
    texts = large(["\x00", "a\rb", "thatâ€™s", "x", "e\u0301"])
    assert normalize_batch(texts.slice(1, 3), FIXING).texts.to_pylist() == ["a\nb", "that’s", "x"]
    _, offsets, data = large(["\x00\x01", "ok"]).buffers()
    hidden = pa.LargeStringArray.from_buffers(2, offsets, data, pa.py_buffer(b"\x02"), 1)
    assert normalize_batch(hidden, FIXING).texts.to_pylist() == [None, "ok"]


@pytest.mark.parametrize("unit", ["a", "汉", "Ã", "â€™", "\u0301", "a\u0300", "\x00", "\r", "e\u0301 ", "🙂"])
def test_a_long_line_is_one_row(unit: str) -> None:
    text = unit * 20_000
    found = normalize_batch(large([text]), FIXING)
    assert normalize_batch(found.texts, FIXING).texts == found.texts


def test_good_files_are_left_alone(shared: Path) -> None:
    changed: dict[str, int] = {}
    for path in sorted([*shared.glob("text_en/*.jsonl"), *shared.glob("text_zh/*.jsonl")]):
        texts = large([json.loads(line)["text"] for line in path.read_text(encoding="utf-8").split("\n") if line])
        found = normalize_batch(texts, FIXING)
        assert not found.mojibake_fixes.null_count
        changed[path.stem] = sum(found.mojibake_fixes.to_pylist())
    assert {name: n for name, n in changed.items() if n} == {"web_c4_demo": 1, "web_cc2019": 6, "web_lid_en": 2}
