import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.text_oracle import FIRST_IS_SLOW, TEXTS

from scoring.core.errors import ConfigError
from transforms.text.pii import redact as pii
from transforms.text.pii.config import KINDS, PiiConfig
from transforms.text.pii.patterns import DETECTORS, Hit

KEY = "a key for the tests"
DROPPED = "\u00ad\u200b\u200c\u200d\u2060"


def configured(**changes: Any) -> PiiConfig:
    return PiiConfig(**{"mode": "redact", "kinds": KINDS, "key": KEY, "key_env": None, "private_ips": False} | changes)


CONFIG = configured()


def large(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def found(text: str, config: PiiConfig = CONFIG) -> list[tuple[str, str]]:
    return [(hit.kind, text[hit.start : hit.stop]) for hit in pii.find(large([text]), config).get(0, [])]


def skeleton(text: str) -> tuple[bytearray, list[int]]:
    """Returns one byte a character, and the index of each in `text`: the slow way."""
    out, places = bytearray(), []
    for place, char in enumerate(text):
        if char in DROPPED:
            continue
        byte = ord(char) if char.isascii() else 0x80 if "\u00c0" <= char < "\u0530" and char.isalpha() else 0x81
        if char in "\u00a0\u2007\u2009\u202f":
            byte = ord(" ")
        elif char in "\u2010\u2011\u2012\u2013\u2212":
            byte = ord("-")
        elif "！" <= char <= "～":
            byte = ord(unicodedata.normalize("NFKC", char))
        out.append(byte)
        places.append(place)
    return out, places


def oracle(text: str, config: PiiConfig) -> list[Hit]:
    """Returns what plain `re` over the whole text finds with the same checks."""
    bare, places = skeleton(text)
    hits = []
    for detector in DETECTORS:
        at = 0
        while detector.kind in config.kinds and (match := detector.pattern.search(bare, at)):
            start, at = match.start(match.lastgroup or 0), match.start() + 1
            checked = detector.check(bare, start, match.end())
            if checked is None:
                continue
            at = checked[0]
            if detector.kind == "ip" and not config.private_ips and pii.pii_checks.is_private(checked[1]):
                continue
            bare[start:at] = b"<" + b">" * (at - start - 1)
            hits.append(Hit(places[start], places[at - 1] + 1, detector.kind, checked[1]))
    return sorted(hits, key=lambda hit: hit.start)


KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nx+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
RANDOM = "Zq3vT8xK1mN7bR5cW9dL2fG4hJ6kP0sA8yUe"

POSITIVE = [
    ("email", "Write to ", "john.o'neil+x@mail.example.co.uk", "."),
    ("email", "联系", "foo_bar@qq.com", "谢谢"),
    ("email", "<", "a@b.io", ">"),
    ("email", "", "büro@münchen.de", ","),
    ("email", "mailto:", "ｆｏｏ＠ｂａｒ．ｃｏｍ", "。"),
    ("email", "", "fo\u200bo@b\u200car.com", " hidden"),
    ("phone", "call ", "+44 20 7946 0958", " now"),
    ("phone", "call ", "+49 (0)30 901820", "."),
    ("phone", "tel:", "+14155550132", ""),
    ("phone", "Call ", "(212) 555-0123", " or"),
    ("phone", "", "212-555-0123", ", "),
    ("phone", "", "1-800-273-8255", ";"),
    ("phone", "fax ", "212.555.0123", "."),
    ("phone", "at ", "212 555 0123", " today"),
    ("phone", "", "212\u2011555\u20110123", ""),
    ("phone", "phone: ", "2125550123", ""),
    ("phone", "", "21\u200b2-555-01\u00ad23", ""),
    ("phone", "手机", "13800138000", "，"),
    ("phone", "电话：", "１３８００１３８０００", "。"),
    ("phone", "", "+86 138-0013-8000", " "),
    ("phone", "", "8613800138000", ""),
    ("phone", "传真", "010-59222799", "，"),
    ("phone", "电话：", "（020）61311042", "  "),
    ("ip", "from ", "93.184.216.34", " at"),
    ("ip", "http://", "93.184.216.34", ":80/x"),
    ("ip", '"client_ip": "', "5.9.33.44", '",'),
    ("ip", "at ", "2.8.150.33", "."),
    ("ip", "User ", "5.102.33.44", " wrote"),
    ("ip", "edits, ", "5.9.33.44", " among them"),
    ("ip", "", "2606:2800:220:1:248:1893:25c8:1946", "."),
    ("ip", "dns ", "2001:4860:4860::8888", ""),
    ("card", "Visa ", "4111 1111 1111 1111", " 12/25"),
    ("card", "", "4111-1111-1111-1111", "."),
    ("card", "", "378282246310005", ""),
    ("card", "", "3782 822463 10005", ""),
    ("card", "卡号", "6212345678901232", "。"),
    ("card", "", "4222222222222", ""),
    ("resident_id", "身份证", "11010519491231002X", "。"),
    ("resident_id", "", "110105 19491231 002x", ""),
    ("iban", "pay ", "DE89 3704 0044 0532 0130 00", " AND"),
    ("iban", "", "GB82WEST12345698765432", ","),
    ("secret", "", "AKIAIOSFODNN7EXAMPLE", " "),
    ("secret", "token ", "ghp_" + RANDOM, "."),
    ("secret", "", "github_pat_11ABCDE_" + RANDOM, ""),
    ("secret", "", "xoxb-123456789012-abcdefABCDEF", ""),
    ("secret", "", "AIza" + RANDOM[:35], ""),
    ("secret", "", "sk-proj-" + RANDOM, ""),
    ("secret", "", "sk_live_" + RANDOM[:24], ""),
    ("secret", "Bearer ", JWT, ""),
    ("secret", "a\n", KEY_BLOCK, "\nb"),
    ("secret", "", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "\ncut off"),
    ("secret", "password=", "Tr0ub4dorxyz", " "),
    ("secret", 'api_key: "', RANDOM, '",'),
    ("secret", "DB_PASSWORD = '", "hG7-kd82.Qp", "'"),
]

NEGATIVE = [
    "on 2021-05-12 at 12:30:45, 1990-1995, 10/11/2012, 2012-10-11T10:11:12Z",
    "ISBN 978-0-306-40615-7, ISBN-10 0306406152, 9780727884862, ISSN 0378-5955",
    "version 1.2.3.4, v10.20.30.40, release 12.0.41.7, Chrome/57.0.29.133, section 3.1.22.4, EC 3.1.1.11",
    '"version": "1.84.1.0", <version>1.84.1.0</version>, AssemblyVersion("1.0.25.0"), Version: 1.0.2.29',
    "Java 1.8.0.25, numpy 1.26.4.1, numpy==1.26.4.1, numpy (1.26.4.1), pkg@1.0.3.22, gzip 1.0.33.2",
    '"numpy": "1.26.4.1", {"jdk": "1.8.0.25"}, foo >= 2.0.0.117, bar~=3.31.0.2, <gson>2.8.0.99</gson>',
    "1.2.3.4 and 1.3.6.1.4.1.311 and 10.20.30.40.50 and 255.255.255.0 and 256.1.1.300 and foo-2.13.44.5.tar.gz",
    "$1,234,567.89 or 12 345 678 or 3.14159265358979 or 1.5e+10 or 100000000000000",
    "1500000000 1500000000000 0x7fffffff 550e8400-e29b-41d4-a716-446655440000 20210512123045",
    "1990 1991 1992 1993 1994 1995 1996; 234 567 8901 2345 6789; 911-911-9111",
    "/news/13912345678.html, id_13800138000, 0.13800138000, 138001380001, 12800138000",
    "icon@2x.png, @handle, a@b, a @ b.com, git@github.com:user/repo, x@y.T, @media, foo@bar",
    "std::vector<int> a::b::c, 12:30:45:10, 00:1B:44:11:3A:B7, fe::x, ::, dead::beef",
    "4111 1111 1111 1112, 1234 5678 9012 3456, 0000 0000 0000 0000, 8111111111111111",
    "110105194912310021, 11010519491331002X, 990105194912310021",
    "DE89 3704 0044 0532 0130 01, XX82WEST12345698765432, AB12 is a room",
    "password: required, token = get_token(x1y2z3w4), api_key=${API_KEY_123}, secret: /etc/keys/abc123x9",
    "sk-learn-something-very-long-indeed, -----BEGIN CERTIFICATE-----, AKIA, ghp_short, eyJ.a.b, the key: value",
    "192.168.0.10, 10.11.12.130, 127.0.0.1, 203.0.113.77, 2001:db8::1, fe80::1",
    "DNA 5'-ACGT-3' (p = 0.00012345678), 12(3):456-789, pp. 1234567-1234589",
    "1 + 2 + 3 + 4 + 5 + 6 + 7 + 8, x+1234567890, +10 000 000, +0123456789",
]


@pytest.mark.parametrize(("kind", "before", "value", "after"), POSITIVE)
def test_what_is_found(kind: str, before: str, value: str, after: str) -> None:
    assert found(before + value + after) == [(kind, value)]


@pytest.mark.parametrize("text", NEGATIVE)
def test_what_is_not(text: str) -> None:
    assert found(text) == []


def test_private_addresses_by_option() -> None:
    text = "192.168.0.10, 203.0.113.77, 2001:db8::1, fe80::1"
    assert [value for _, value in found(text, configured(private_ips=True))] == text.split(", ")


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("phone", ["+1 212-555-0123", "(212) 555-0123", "1-212-555-0123", "212.555.0123"]),
        ("phone", ["+86 138 0013 8000", "13800138000", "１３８００１３８０００", "008613800138000"]),
        ("email", ["Foo@Bar.com", "foo@bar.com", "ｆｏｏ@bar.com"]),
        ("card", ["4111 1111 1111 1111", "4111111111111111"]),
        ("iban", ["DE89 3704 0044 0532 0130 00", "DE89370400440532013000"]),
        ("resident_id", ["11010519491231002X", "110105 19491231 002x"]),
        ("ip", ["2001:4860:4860::8888", "2001:4860:4860:0000:0:0:0:8888"]),
    ],
)
def test_one_value_has_one_pseudonym_however_it_is_spelt(kind: str, spellings: list[str]) -> None:
    texts = pii.redact(large(spellings), CONFIG).texts.to_pylist()
    assert len(set(texts)) == 1
    assert texts[0].startswith(f"<{kind.upper()}_")
    assert pii.redact(large(spellings[:1]), configured(key="another key, as long")).texts[0].as_py() != texts[0]


def test_pseudonym_is_pinned() -> None:
    assert pii.redact(large(["a@b.com!"]), CONFIG).texts.to_pylist() == ["<EMAIL_tprsbngg>!"]


PIECES = st.sampled_from([p[1] + p[2] + p[3] for p in POSITIVE] + [p[2] for p in POSITIVE]
                         + [p for text in NEGATIVE for p in text.split(", ")]
                         + ["@", ".", "-", " ", "1", "é", "中", "\u200b", "+", "(", ")", "::", "password=", "tel ", "v",
                            "\n", "４", "\u2011"])  # fmt: skip
MIXES = st.lists(PIECES, max_size=6).map("".join)
NUMBERS = st.text(st.sampled_from("0123456789 .-()+:@aAxXkK=\u200b１é"), max_size=40)


@FIRST_IS_SLOW
@given(st.lists(st.none() | MIXES | NUMBERS | TEXTS, max_size=4), st.booleans())
def test_windows_lose_nothing(texts: list[str | None], private: bool) -> None:
    config = configured(private_ips=private)
    hits = pii.find(large(texts), config)
    assert [hits.get(row, []) for row in range(len(texts))] == [oracle(t, config) if t else [] for t in texts]


@FIRST_IS_SLOW
@given(st.lists(st.none() | MIXES | NUMBERS, max_size=4))
def test_redacting_twice_changes_nothing(texts: list[str | None]) -> None:
    once = pii.redact(large(texts), CONFIG)
    again = pii.redact(once.texts, CONFIG)
    assert again.texts == once.texts
    assert not [spans for spans in again.spans.to_pylist() if spans]
    for text, spans in zip(once.texts.to_pylist(), once.spans.to_pylist(), strict=True):
        assert (text is None) == (spans is None)
        for span in spans or []:
            assert text[span["start"] : span["end"]].startswith(f"<{span['kind'].upper()}_")
        assert [s["start"] for s in spans or []] == sorted(s["start"] for s in spans or [])


def test_spans_and_counts_speak_of_the_new_text() -> None:
    result = pii.redact(large(["x", None, "中 a@b.com, 13800138000 (a@b.com)"]), CONFIG)
    text = result.texts[2].as_py()
    spans = result.spans.to_pylist()
    assert spans[:2] == [[], None]
    assert [s["kind"] for s in spans[2]] == ["email", "phone", "email"]
    assert text[spans[2][0]["start"] : spans[2][0]["end"]] == text[spans[2][2]["start"] : spans[2][2]["end"]]
    assert not {"a@b", "138"} & {text[k : k + 3] for k in range(len(text))}
    assert result.counts["email"].to_pylist() == [0, None, 2]
    assert result.counts["phone"].to_pylist() == [0, None, 1]


def test_detecting_leaves_the_text_and_needs_no_key() -> None:
    texts = large(["to a@b.com"])
    result = pii.redact(texts, configured(mode="detect", key=""))
    assert result.texts is texts
    assert result.spans.to_pylist() == [[{"kind": "email", "start": 3, "end": 10}]]


def test_off_and_kinds_not_looked_for_are_null() -> None:
    texts = large(["a@b.com 13800138000"])
    result = pii.redact(texts, configured(mode="off", key=""))
    assert (result.texts, result.spans.to_pylist()) == (texts, [None])
    one = pii.redact(texts, configured(kinds=("email",)))
    assert one.texts[0].as_py().endswith("> 13800138000")
    assert {kind: column[0].as_py() for kind, column in one.counts.items() if column[0].is_valid} == {"email": 1}


def test_nothing_depends_on_the_other_rows() -> None:
    texts = ["x a@b.com", "", "13800138000", "no", "c@d.org"]
    together = pii.redact(large(texts), CONFIG).texts.to_pylist()
    assert together == [pii.redact(large([t]), CONFIG).texts[0].as_py() for t in texts]
    assert pii.redact(large(["zz", *texts]).slice(1), CONFIG).texts.to_pylist() == together
    assert pii.redact(large([]), CONFIG).texts.to_pylist() == []


def test_values_are_nowhere_but_in_the_text() -> None:
    assert "a@b" not in repr(pii.find(large(["a@b.com"]), CONFIG))
    assert KEY not in repr(CONFIG)


def test_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(key="", key_env="GRADSIFT_TEST_KEY")
    with pytest.raises(ConfigError, match="GRADSIFT_TEST_KEY"):
        pii.redact(large(["a@b.com"]), config)
    monkeypatch.setenv("GRADSIFT_TEST_KEY", KEY)
    assert pii.redact(large(["a@b.com"]), config).texts == pii.redact(large(["a@b.com"]), CONFIG).texts
    assert pii.key_check(config) == pii.key_check(CONFIG) != pii.key_check(configured(key="another key, as long"))


@pytest.mark.parametrize("changes", [{"key": "short"}, {"kinds": ("email", "email")}, {"kinds": ("name",)}])
def test_odd_configurations_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"key must|kinds must"):
        configured(**changes)


@pytest.mark.parametrize("unit", ["@", "1", ".", "1.", "1 ", "a@b.", "::", "-----BEGIN PRIVATE KEY-----",
                                  "password=a1", "key=:", "sk-", "eyJ.", "DE89 ", "+1", "\u200b", "１",
                                  "4111 1111 1111 1111 "])  # fmt: skip
def test_long_rows_of_one_thing_settle(unit: str) -> None:
    text = (unit * 60_000)[:60_000]
    once = pii.redact(large([text]), CONFIG)
    assert pii.redact(once.texts, CONFIG).texts == once.texts


def real(shared: Path) -> Iterator[tuple[str, list[str]]]:
    for path in sorted([*shared.glob("text_en/*.jsonl"), *shared.glob("text_zh/*.jsonl")]):
        yield path.stem, [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_real_files_hold_what_plain_patterns_find(shared: Path) -> None:
    kinds: dict[str, int] = {}
    for _, texts in real(shared):
        hits = pii.find(large(texts), CONFIG)
        for row, text in enumerate(texts):
            if row in hits or row % 50 == 0:
                assert hits.get(row, []) == oracle(text, CONFIG)
            for hit in hits.get(row, []):
                kinds[hit.kind] = kinds.get(hit.kind, 0) + 1
    assert kinds == {"email": 71, "phone": 69}
