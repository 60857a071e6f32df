"""Planted faults: rows that a curator should drop, repair or notice, each named in its column `fault`."""

import json
import random
from collections.abc import Callable, Iterator, Sequence

from pipelines.sample_corpus.texts import Document, draw
from scoring.core.types import JsonObject

LONG_LINE_CHARS = 2_000_000
_KEYS = "asdfghjkl qwertyuiop zxcvbnm ;lkj poiu"
_SENTENCES = (
    "Click here to read more.", "Buy one and get one free today.", "Thank you for your visit.",
    "The best offer of the year is waiting for you.",
)  # fmt: skip
_BOILERPLATE = (
    "We use cookies to improve your experience. By using this site you accept our privacy policy.",
    "Home", "About us", "Products", "Log in", "Sign up for our newsletter!",
    "Copyright 2024 {name}. All rights reserved.", "Terms of use", "Privacy policy", "Follow us on social media:",
    "Share this page", "Back to top", "Please enable javascript to view this page.",
)  # fmt: skip
_PEOPLE = ("Ada Palmer", "Bo Lindgren", "Carla Núñez", "Dev Anand", "Eun-ji Park", "Femi Okafor")
_CHINESE = (
    "清晨的湖面很安静，薄雾慢慢散开，远处的山露出青色的轮廓。渔民把小船划到湖心，撒下网，等着太阳升起来。"
    "岸边的孩子们背着书包去上学，一路说笑，惊起了芦苇里的几只白鹭。",
    "图书馆的二楼有一排靠窗的座位，下午的阳光正好照在桌面上。管理员说，最受欢迎的书不是小说，"
    "而是一本讲怎样种菜的旧书，书页已经被翻得发软，边上写满了读者留下的笔记。",
    "这台机器每小时可以处理三百公斤的茶叶。新鲜的叶子先摊开晾干，再用高温杀青，最后揉捻成形。"
    "师傅认为，机器能代替力气，却不能代替鼻子，茶香的浓淡还是要靠人来判断。",
    "地铁在早上七点最拥挤。工程师统计了一个月的数据，发现只要把三号线的发车间隔缩短二十秒，"
    "换乘站的等候时间就能减少一半，而且不需要增加新的列车。",
    "冬天的北方城市，暖气一开，窗玻璃上就结满了水珠。老人喜欢在阳台上养几盆水仙，"
    "春节前后正好开花，屋子里有淡淡的香味，客人一进门就能闻到。",
    "考古队在河边发现了一口古井，井壁用青砖砌成，底部有陶罐和几枚铜钱。根据铜钱上的文字，"
    "专家推断这口井已经有一千多年的历史，曾经供应整个村子的饮水。",
)


def lines(documents: Sequence[Document], copies: int, seed: int) -> list[bytes]:
    """Returns the faulty lines of the texts file: `copies` of each kind that comes in numbers, then the single ones."""
    rng = random.Random(draw(seed, "faults"))
    found = [_line(row) for row in _rows(documents, copies, rng)]
    return [*found, *_single(documents)]


def _rows(documents: Sequence[Document], copies: int, rng: random.Random) -> Iterator[JsonObject]:
    for name, make in _KINDS.items():
        for number in range(copies):
            text = make(rng.choice(documents).text, rng)
            yield _row(name, number, text)
    for number, text in enumerate(_CHINESE):
        yield _row("chinese", number, text)


def _row(fault: str, number: int, text: object) -> JsonObject:
    return {"id": f"fault-{fault}-{number:02d}", "text": text, "domain": "faults", "origin": None, "fault": fault}


def _line(row: JsonObject) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


def _same(text: str, _rng: random.Random) -> str:
    return text


def _nearly_same(text: str, rng: random.Random) -> str:
    """Returns `text` with one word in a hundred replaced: about .9 of its 5-grams stay."""
    words = text.split(" ")
    for place in rng.sample(range(len(words)), max(1, len(words) // 100)):
        words[place] = rng.choice(("quite", "another", "indeed", "often", "rather"))
    return " ".join(words)


def _noise(_text: str, rng: random.Random) -> str:
    return "".join(rng.choice(_KEYS) for _ in range(rng.randint(400, 1200)))


def _repeated(_text: str, rng: random.Random) -> str:
    return "\n".join([rng.choice(_SENTENCES)] * rng.randint(30, 90))


def _boilerplate(_text: str, rng: random.Random) -> str:
    name = rng.choice(("Example Shop", "Example News", "Example Forum"))
    return "\n".join(line.format(name=name) for line in rng.sample(_BOILERPLATE, len(_BOILERPLATE)))


def _personal(text: str, rng: random.Random) -> str:
    """Returns `text` with a made-up person's data: reserved domains, numbers and addresses."""
    name = rng.choice(_PEOPLE)
    mail = name.lower().replace(" ", ".").replace("ú", "u").replace("ñ", "n") + "@example.com"
    phone = f"+1 202-555-01{rng.randrange(100):02d}"
    address = f"192.0.2.{rng.randrange(1, 255)}"
    return f"{text}\n\nFor questions write to {name} at {mail}, call {phone}, or log in from {address}."


def _shuffled(text: str, rng: random.Random) -> str:
    words = text.split()
    return " ".join(rng.sample(words, len(words)))


def _symbols(text: str, rng: random.Random) -> str:
    return " ".join(f"{word} {rng.choice(('###', '...', '…', '{}', '|'))}" for word in text.split()[:120])


def _bullets(text: str, _rng: random.Random) -> str:
    return "\n".join(f"- {word}" for word in text.split()[:100])


def _short(text: str, rng: random.Random) -> str:
    return " ".join(text.split()[: rng.randint(2, 12)])


_KINDS: dict[str, Callable[[str, random.Random], str]] = {
    "exact_duplicate": _same,
    "near_duplicate": _nearly_same,
    "keyboard_noise": _noise,
    "repeated_sentence": _repeated,
    "boilerplate": _boilerplate,
    "personal_data": _personal,
    "shuffled_words": _shuffled,
    "symbols": _symbols,
    "bullets": _bullets,
    "too_short": _short,
}


def _single(documents: Sequence[Document]) -> Iterator[bytes]:
    """Yields the lines of which one is enough; the last ones are no rows at all."""
    first = documents[0]
    yield _line(_row("empty_text", 0, ""))
    yield _line(_row("null_text", 0, None))
    yield _line(_row("wrong_type", 0, 42))
    yield _line(_row("nul_character", 0, first.text[:200] + "\0" + first.text[200:]))
    yield _line(_row("lone_surrogate", 0, "SURROGATE " + first.text)).replace(b"SURROGATE", rb"\ud800")
    yield _line(_row("long_line", 0, _long(documents)))
    yield _line(_row("duplicate_id", 0, "Another row has this id. " + documents[-1].text) | {"id": first.id})
    yield _line({"id": "fault-no_content-00", "domain": "faults", "fault": "no_content"})
    yield b'["fault", "not_an_object"]'
    yield b'{"id": "fault-not_json-00", "fault": "not_json", "text": "the line breaks off'
    yield b'{"id": "fault-bad_encoding-00", "fault": "bad_encoding", "text": "caf\xe9"}'


def _long(documents: Sequence[Document]) -> str:
    whole = " ".join(" ".join(d.text.split()) for d in documents)
    return (whole * (LONG_LINE_CHARS // len(whole) + 1))[:LONG_LINE_CHARS]
