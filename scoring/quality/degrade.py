"""Degraded copies of good text: the negative examples of the weakly labelled quality head.

Each kind is a pure function `(text, rng) -> text`. They imitate what crawls contain: lost word order,
typing noise, one sentence over and over, page furniture, and markup that was cut off.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

_UNSPACED_WORD = 20  # mean characters between spaces above it: a script without spaces

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NOISE_RATIO = 0.2
_SHORT_SENTENCE = 80

_FURNITURE = (
    "Home", "Log in", "Sign up", "Menu", "Search", "Next »", "« Previous", "Read more...", "Share", "Tweet", "Reply",
    "Click here", "Subscribe to our newsletter", "Privacy Policy", "Terms of Use", "Cookie settings", "Accept all",
    "We use cookies to improve your experience.", "All rights reserved.", "Copyright ©", "Add to cart",
    "Posted by admin", "0 comments", "Leave a comment", "Page 1 of 24", "BUY NOW", "Contact us", "About",
)  # fmt: skip
_UNSPACED_FURNITURE = (
    "首页", "登录", "注册", "搜索", "下一页", "上一页", "点击这里", "更多>>", "分享到", "版权所有", "联系我们",
    "隐私政策", "关于我们", "网站地图", "加入收藏", "立即购买", "免费下载", "评论(0)", "上一篇", "下一篇",
)  # fmt: skip
_OPENINGS = (
    '<div class="col-md-4 item" id="n{k}">', '<a href="/p?id={k}&amp;ref=nav">', '<span style="color:#{k}">', "<td>",
    '<img src="/i/{k}.png" alt="', "<li>", "&nbsp;&nbsp;", "</div></div>", "<script>var a{k}=function(){{", "<br />",
)  # fmt: skip

_FOREIGN = (
    (
        "Vanha silta ylitti joen kaupungin pohjoispuolella.", "Talonpojat toivat syksyllä viljaa ja hunajaa torille.",
        "Kukaan ei tiedä, kuka kirkon kellon aikanaan valoi.", "Talvella järven jää kantoi hevosen ja reen.",
        "Lapset kulkivat kouluun metsäpolkua pitkin aamuhämärässä.", "Myöhemmin rautatie muutti koko laakson elämän.",
        "Nykyään vanhassa myllyssä on pieni museo.", "Sateinen kesä pilasi heinän, mutta perunaa riitti kaikille.",
    ),
    (
        "Stary most przechodził przez rzekę na północ od miasta.", "Jesienią chłopi przywozili na targ zboże i miód.",
        "Nikt nie wie, kto odlał dzwon w tutejszym kościele.", "Zimą lód na jeziorze utrzymywał konia i sanie.",
        "Dzieci chodziły do szkoły ścieżką przez las o świcie.", "Później kolej zmieniła życie w całej dolinie.",
        "Dziś w starym młynie mieści się niewielkie muzeum.",
        "Deszczowe lato zniszczyło siano, ale ziemniaków starczyło.",
    ),
    (
        "Eski köprü şehrin kuzeyinde nehrin üzerinden geçiyordu.", "Köylüler sonbaharda pazara tahıl ve bal getirirdi.",
        "Kilisenin çanını kimin döktüğünü kimse bilmiyor.", "Kışın gölün buzu bir atı ve kızağı taşıyordu.",
        "Çocuklar okula şafakta orman yolundan giderlerdi.", "Daha sonra demiryolu bütün vadinin yaşamını değiştirdi.",
        "Bugün eski değirmende küçük bir müze var.", "Yağmurlu yaz samanı bozdu, ama patates herkese yetti.",
    ),
)  # fmt: skip


def is_unspaced(text: str) -> bool:
    """Returns whether `text` is in a script that puts no spaces between words."""
    return len(text) > _UNSPACED_WORD * max(1, len(text.split()))


def _units(text: str) -> tuple[list[str], str]:
    """Returns the words of `text` and what joins them; characters where words have no spaces."""
    return ([c for c in text if not c.isspace()], "") if is_unspaced(text) else (text.split(), " ")


def shuffled(text: str, rng: np.random.Generator) -> str:
    """Returns the words (characters of an unspaced script) of `text` in random order."""
    units, joint = _units(text)
    return joint.join(units[int(k)] for k in rng.permutation(len(units)))


def keyboard_noise(text: str, rng: np.random.Generator) -> str:
    """Returns `text` with a fifth of its letters replaced by a neighbouring key."""
    struck = rng.random(len(text)) < _NOISE_RATIO
    return "".join(_neighbour(c, rng) if hit and c.isalnum() else c for c, hit in zip(text, struck, strict=True))


def _neighbour(char: str, rng: np.random.Generator) -> str:
    row = next((r for r in _KEYS if char.lower() in r), None)
    if row is None:
        return _KEYS[1][int(rng.integers(len(_KEYS[1])))]
    place = row.index(char.lower()) + int(rng.choice((-1, 1)))
    return row[place % len(row)]


def repeated(text: str, rng: np.random.Generator) -> str:
    """Returns one short sentence of `text` over and over, to the length of `text`."""
    found = [s.strip() for s in re.split(r"(?<=[.!?。！？])\s*|\n+", text) if s and s.strip()]
    if not found:
        return text
    sentence = found[int(rng.integers(len(found)))][:_SHORT_SENTENCE]
    joint = "" if is_unspaced(text) else " "
    return joint.join([sentence] * max(3, len(text) // (len(sentence) + 1)))


def boilerplate(text: str, rng: np.random.Generator) -> str:
    """Returns page furniture of the length of `text`, with a few of its words strewn in."""
    furniture = _UNSPACED_FURNITURE if is_unspaced(text) else _FURNITURE
    units, _ = _units(text)
    found: list[str] = []
    while sum(map(len, found)) < len(text):
        found.append(furniture[int(rng.integers(len(furniture)))])
        if units and rng.random() < 0.2:
            found.append(units[int(rng.integers(len(units)))])
    return str(rng.choice((" | ", "\n", " ")).join(found))


def truncated_markup(text: str, rng: np.random.Generator) -> str:
    """Returns pieces of `text` between broken tags; much of it is lost and the end is cut off."""
    units, joint = _units(text)
    found: list[str] = []
    position = 0
    while position < len(units):
        found.append(str(rng.choice(_OPENINGS)).format(k=int(rng.integers(1000))))
        step = int(rng.integers(1, 8))
        found.append(joint.join(units[position : position + step]))
        position += step + int(rng.integers(0, 8))
    return "".join(found)[: max(1, len(text))]


def wrong_language(text: str, rng: np.random.Generator) -> str:
    """Returns sentences of the length of `text`, in a language of which it has fewest of the commonest words."""
    words = set(text.lower().split())
    known = [len(words.intersection(" ".join(sentences).lower().split())) for sentences in _FOREIGN]
    sentences = _FOREIGN[int(np.argmin(known))]
    found: list[str] = []
    while sum(map(len, found)) < len(text):
        found += [sentences[int(k)] for k in rng.permutation(len(sentences))]
    return " ".join(found)[: max(1, len(text))]


KINDS: tuple[tuple[str, Callable[[str, np.random.Generator], str]], ...] = (
    ("shuffled", shuffled),
    ("keyboard_noise", keyboard_noise),
    ("repeated", repeated),
    ("boilerplate", boilerplate),
    ("truncated_markup", truncated_markup),
)

CANARIES = (*KINDS, ("wrong_language", wrong_language))  # every kind of junk that scores are tried on


def degrade_in_turn(texts: Sequence[str], seeds: Sequence[int]) -> list[tuple[str, str]]:
    """Returns `(kind, degraded text)` of each text: the kinds in turn, each text by its own seed."""
    found = []
    for k, (text, seed) in enumerate(zip(texts, seeds, strict=True)):
        kind, function = KINDS[k % len(KINDS)]
        found.append((kind, function(text, np.random.default_rng(seed))))
    return found
