"""What personal data looks like: a pattern over skeletons, and an exact check, for every kind.

A detector is tried at every position where a match may begin. What its check refuses hides nothing: the search
goes on one character later. What it finds is masked for all that comes after, as if it were redacted already.
Patterns look at most `LOOK` characters past their ends, and but for key blocks they are bounded, so a search takes
linear time on any text.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from transforms.text.pii import checks, scan
from transforms.text.pii.config import Kind

LOOK = 2
_WORD = rb"A-Za-z0-9_\x80"
_ALONE = rb"(?<![" + _WORD + rb"])"  # nothing of a word before it
_ENDS = rb"(?![" + _WORD + rb"]|[.\-][0-9])"  # nor after it, nor a further number
_OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = rb"[A-Za-z0-9\x80](?:[A-Za-z0-9\x80\-]{0,61}[A-Za-z0-9\x80])?\."

Check = Callable[[bytearray, int, int], checks.Found]


@dataclass(frozen=True)
class Detector:
    """How one form of one kind is found."""

    kind: Kind
    group: int  # of `pii_scan.Windows`
    pattern: re.Pattern[bytes]
    longest: int | None  # characters of a match; None is unbounded
    check: Check  # (skeleton, start, end) → (end, canonical value), or None


@dataclass(frozen=True)
class Hit:
    """One finding: where it stands, and the one spelling of all values that mean the same."""

    start: int
    stop: int
    kind: Kind
    value: bytes = field(repr=False)


def _of(kind: Kind, group: int, pattern: bytes, longest: int | None, check: Check) -> Detector:
    return Detector(kind, group, re.compile(pattern), longest, check)


_TOKENS = (
    rb"(?:AKIA|ASIA)[A-Z0-9]{16}",
    rb"gh[pousr]_[A-Za-z0-9]{36,255}",
    rb"github_pat_[A-Za-z0-9_]{22,255}",
    rb"xox[abeoprs]-[A-Za-z0-9\-]{10,255}",
    rb"AIza[A-Za-z0-9_\-]{35}",
    rb"sk-[A-Za-z0-9][A-Za-z0-9_\-]{19,255}",
    rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}",
    rb"glpat-[A-Za-z0-9_][A-Za-z0-9_\-]{19,255}",
    rb"hf_[A-Za-z0-9]{30,255}",
    rb"eyJ[A-Za-z0-9_\-]{8,4096}+\.[A-Za-z0-9_\-]{8,4096}+\.[A-Za-z0-9_\-]{8,4096}+",
)
_KEY_BLOCK = (
    rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[^\-]*+(?:-(?!----)[^\-]*+)*-----END [A-Z0-9 ]{1,64}-----|(?:\s{0,4}[A-Za-z0-9+/=]{16,256}+)*)"
)
_ASSIGNMENT = (
    rb"(?i:api[_\-]?key|secret[_\-]?key|access[_\-]?key|auth[_\-]?key|private[_\-]?key|token|secret"
    rb"|password|passwd|pwd)[\"']?[ ]{0,2}[:=][ ]{0,2}[\"']?"
    rb"(?P<value>[A-Za-z0-9+/_.\-!@#^*~]{8,512}+={0,2})(?![\w$%(\[{<])"
)

# Where two claim the same characters, the first has them.
DETECTORS: tuple[Detector, ...] = (
    _of("secret", scan.KEY_BLOCK, _KEY_BLOCK, None, checks.key_block),
    _of("secret", scan.TOKEN, _ALONE + rb"(?:" + rb"|".join(_TOKENS) + rb")(?![A-Za-z0-9])", 12400, checks.token),
    _of("secret", scan.ASSIGNMENT, _ASSIGNMENT, 600, checks.assigned),
    _of(
        "email",
        scan.EMAIL,
        rb"(?<![A-Za-z0-9\x80])[A-Za-z0-9\x80][A-Za-z0-9\x80._%+'\-]{0,63}+@(?:" + _LABEL + rb"){1,8}"
        rb"[A-Za-z\x80]{2,24}(?![A-Za-z0-9\x80])",
        620,
        checks.email,
    ),
    _of("iban", scan.IBAN, _ALONE + rb"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}", 64, checks.iban),
    _of("card", scan.NUMBER, _ALONE + rb"(?<![0-9./][ \-.])(?<![./])[0-9]{13,19}" + _ENDS, 20, checks.card),
    _of(
        "card",
        scan.NUMBER,
        _ALONE + rb"(?<![0-9][ \-.])(?<![./])[0-9]{4}(?:([ \-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?"
        rb"|([ \-])[0-9]{6}\2[0-9]{4,5})" + _ENDS,
        24,
        checks.card,
    ),
    _of(
        "resident_id",
        scan.NUMBER,
        _ALONE + rb"[1-9][0-9]{5}[ \-]?(?:19|20)[0-9]{6}[ \-]?[0-9]{3}[0-9Xx](?![" + _WORD + rb"])",
        20,
        checks.resident_id,
    ),
    _of(
        "ip",
        scan.NUMBER,
        rb"(?<![" + _WORD + rb".])(?<![A-Za-z][/\-])(?:" + _OCTET + rb"\.){3}" + _OCTET
        + rb"(?![" + _WORD + rb"]|\.[0-9]|-[A-Za-z])",
        15,
        checks.ipv4,
    ),
    _of(
        "ip",
        scan.IPV6,
        rb"(?<![" + _WORD + rb":.])[0-9A-Fa-f:]{2,39}+(?:(?:\.[0-9]{1,3}){3})?(?![" + _WORD + rb":]|\.[0-9])",
        51,
        checks.ipv6,
    ),
    _of("phone", scan.NUMBER, _ALONE + rb"(?<![+.])\+[1-9](?:[ .\-()]{0,2}[0-9]){7,14}(?![0-9])", 48, checks.e164),
    _of(
        "phone",
        scan.NUMBER,
        _ALONE + rb"(?<![+./$])(?<![0-9][.\-])(?:1[ .\-]?)?(?:\([2-9][0-9]{2}\)[ .\-]{0,2}|[2-9][0-9]{2}[.\-]"
        rb"|[2-9][0-9]{2} (?=[0-9]{3}[ \-.]))[2-9][0-9]{2}[ .\-][0-9]{4}" + _ENDS,
        22,
        checks.north_american,
    ),
    _of("phone", scan.NUMBER, _ALONE + rb"(?<![+./$\-])1?[2-9][0-9]{9}" + _ENDS, 11, checks.north_american_bare),
    _of(
        "phone",
        scan.NUMBER,
        _ALONE + rb"(?<![+./$])(?<![0-9][\-])(?:(?:00)?86[ \-]?)?1[3-9][0-9]([ \-]?)[0-9]{4}\1[0-9]{4}" + _ENDS,
        19,
        checks.chinese,
    ),
    _of(
        "phone",
        scan.NUMBER,
        _ALONE + rb"(?<![+./$])(?<![0-9][\-])(?:\(0[1-9][0-9]{1,2}\)[ \-]?|0[1-9][0-9]{1,2}-)[2-8][0-9]{6,7}" + _ENDS,
        15,
        checks.chinese,
    ),
)  # fmt: skip


def hits(detector: Detector, skeleton: bytearray, spans: Iterable[tuple[int, int]]) -> Iterator[Hit]:
    """Yields what `detector` finds, from left to right, beginning in one of the ordered `spans` (start, stop).

    Whoever masks a hit in `skeleton` before the next is asked for, changes what the next one sees beside it.
    """
    at = 0
    for start, stop in spans:
        at = max(at, start)
        while at < stop and (match := _first(detector, skeleton, at, stop)):
            first = match.start(match.lastgroup or 0)
            found = detector.check(skeleton, first, match.end())
            at = match.start() + 1
            if found:
                at = found[0]
                yield Hit(first, found[0], detector.kind, found[1])


def _first(detector: Detector, skeleton: bytearray, at: int, stop: int) -> re.Match[bytes] | None:
    """Returns the first match that begins at `at` ≤ position < `stop`.

    A search reads on for as long as a match may be; where that is much longer than the span, each position is tried.
    """
    longest, size = detector.longest, len(skeleton)
    end = size if longest is None else min(stop + longest + LOOK, size)
    if longest is None or stop - at < longest // 16:
        return next((m for p in range(at, stop) if (m := detector.pattern.match(skeleton, p, end))), None)
    match = detector.pattern.search(skeleton, at, end)
    return match if match and match.start() < stop else None
