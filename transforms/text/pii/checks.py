"""The exact check behind each pattern of `pii_patterns`: (skeleton, start, end) → (end, canonical value) or None.

The canonical value is one spelling for all that mean the same, e.g. `+12125550123` for `(212) 555-0123`.
"""

import ipaddress
import math
import re
from collections import Counter
from datetime import date

Found = tuple[int, bytes] | None

_LOOK_BACK = 24
_TEL = re.compile(rb"(?i)(?:tel|telephone|phone|call|fax|mobile|cell|sms|whatsapp|text)\b[^0-9A-Za-z]{0,4}"
                  rb"(?:(?:no|number|us|at|me|is)\b[^0-9A-Za-z]{0,4}){0,2}\Z")  # fmt: skip
_VERSION = re.compile(rb"(?i)(?:\bv|\bEC|\bOID|\bver|version|release|revision|\brev|build|firmware|update|upgrade|patch"
                      rb"|kernel|section|\bsec|clause|article|chapter|paragraph|appendix|figure|\bfig|table|rule|part)"
                      rb"s?[\"'\])]{0,2}[.:# =<>(]*[\"']?(?:to )?\Z")  # fmt: skip
_NAMED = re.compile(rb"([A-Za-z][A-Za-z0-9_+#\-]*)[\"'\])]{0,2}[ :=@~^<>(]{1,4}[\"']?\Z")  # numpy==1.26.4.1
_HOST = re.compile(rb"(?i)(?:\A|[_\-])(?:ips?|ipv4|addr|address(?:es)?|hosts?|hostname|servers?|nameserver|dns|gateway"
                   rb"|router|proxy|client|users?|visitor|node|peer|subnet|netmask|network|range|ping|ssh|telnet|curl"
                   rb"|traceroute|from|to|at|by|via|is|was|are|be|and|or|on|with|of|for|in|as|than|the|an?|that|this)\Z"
                   )  # fmt: skip
_FILES = frozenset(b"png jpg jpeg gif webp svg css js json html htm xml php exe dll txt pdf".split())
_COUNTRIES = frozenset(  # ITU-T E.164, without +1
    map(str, (7, 20, 27, *range(30, 35), 36, 39, 40, 41, *range(43, 50), *range(51, 59), *range(60, 67), 81, 82, 84, 86,
              *range(90, 96), 98, 211, 212, 213, 216, 218, *range(220, 270), *range(290, 300), *range(350, 390),
              420, 421, 423, *range(500, 510), *range(590, 600), *range(670, 693), 850, 852, 853, 855, 856, 880, 886,
              *range(960, 999)))
)  # fmt: skip
_PROVINCES = frozenset(
    map(str, (*range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47), *range(50, 55), *range(61, 66), 71, 81,
              82, 83))
)  # fmt: skip
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643-1999
_IBANS = (  # the IBAN registry (SWIFT): country and length
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22"
    "GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30"
    "NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20"
    "YE30"
)
_IBAN_LENGTHS = {_IBANS[k : k + 2]: int(_IBANS[k + 2 : k + 4]) for k in range(0, len(_IBANS), 4)}


def _before(text: bytearray, start: int) -> bytes:
    return bytes(text[max(0, start - _LOOK_BACK) : start])


def _digits(text: bytearray) -> str:
    return re.sub(rb"[^0-9]", b"", text).decode("ascii")


def email(text: bytearray, start: int, end: int) -> Found:
    """Refuses names of files (`icon@2x.png`) and of Git remotes (`git@host:path`)."""
    value = bytes(text[start:end]).lower()
    if value.rpartition(b".")[2] in _FILES or (value.startswith(b"git@") and text[end : end + 1] == b":"):
        return None
    return end, value


def e164(text: bytearray, start: int, end: int) -> Found:
    """Wants a country code that is in use, and ten digits after `+1`."""
    digits = _digits(text[start:end])
    if digits[0] == "1":
        right = len(digits) == 11 and digits[1] in "23456789" and digits[4] in "23456789"
    else:
        right = digits[:1] in _COUNTRIES or digits[:2] in _COUNTRIES or digits[:3] in _COUNTRIES
    return (end, f"+{digits}".encode()) if right else None


def north_american(text: bytearray, start: int, end: int) -> Found:
    """Refuses the service codes 211, 311, … as area or exchange; one that spaces part must stand alone."""
    digits = _digits(text[start:end])[-10:]
    if digits[1:3] == "11" or digits[4:6] == "11":
        return None
    spaced = re.fullmatch(rb"[0-9 ]+", text[start:end])
    if spaced and (re.search(rb"[0-9][ ]\Z", _before(text, start)) or re.match(rb"[ ][0-9]", text[end : end + 2])):
        return None
    return end, f"+1{digits}".encode()


def north_american_bare(text: bytearray, start: int, end: int) -> Found:
    """Wants a word such as `phone` or `call` before ten digits without signs."""
    return north_american(text, start, end) if _TEL.search(_before(text, start)) else None


def chinese(text: bytearray, start: int, end: int) -> Found:
    """Takes all that the pattern does; one that spaces part must stand alone."""
    if b" " in text[start:end] and re.search(rb"[0-9][ ]\Z", _before(text, start)):
        return None
    return end, b"+86" + re.sub(rb"\A(?:(?:00)?86|0)", b"", _digits(text[start:end]).encode())


def ipv4(text: bytearray, start: int, end: int) -> Found:
    """Refuses version and section numbers, and what no host on the Internet has as its address."""
    numbers, before = [int(part) for part in text[start:end].split(b".")], _before(text, start)
    if max(numbers) < 20 or not 0 < numbers[0] < 224 or _VERSION.search(before) or _is_version(numbers, before):
        return None
    return end, bytes(text[start:end])


def _is_version(numbers: list[int], before: bytes) -> bool:
    """Whether small numbers follow a name that is no word for hosts, nor one that any sentence has."""
    named = _NAMED.search(before)
    small = numbers[0] < 10 and min(numbers[1:]) < 10
    return small and named is not None and not _HOST.search(named[1])


def ipv6(text: bytearray, start: int, end: int) -> Found:
    """Wants a full address, or one with `::` in a block that is in use."""
    value = bytes(text[start:end])
    if value.endswith(b":") and not value.endswith(b"::"):
        value = value[:-1]
    try:
        address = ipaddress.IPv6Address(value.decode("ascii"))
    except ValueError:
        return None
    first = int(address) >> 112
    used = 0x2000 <= first < 0x4000 or first >> 9 == 0xFC00 >> 9 or first >> 6 == 0xFE80 >> 6
    return (start + len(value), address.compressed.encode()) if used else None


def is_private(value: bytes) -> bool:
    """Whether the canonical address `value` is private, of this host, or reserved for documentation."""
    return not ipaddress.ip_address(value.decode("ascii")).is_global


def card(text: bytearray, start: int, end: int) -> Found:
    """Wants the prefix and length of an issuer, and Luhn's check digit (ISO/IEC 7812)."""
    digits = _digits(text[start:end])
    return (end, digits.encode()) if _is_issued(digits) and _luhn(digits) else None


def _is_issued(digits: str) -> bool:
    size, two, three, four = len(digits), int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":  # Visa
        return size in (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720 or 2200 <= four <= 2204:  # Mastercard, Mir
        return size == 16
    if two in (34, 37):  # American Express
        return size == 15
    if 300 <= three <= 305 or two in (36, 38, 39):  # Diners Club
        return size == 14
    return size >= 16 and (3528 <= four <= 3589 or four == 6011 or two in (62, 65) or 644 <= three <= 649)


def _luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def resident_id(text: bytearray, start: int, end: int) -> Found:
    """Wants a province, a day that was, and the check character of GB 11643-1999."""
    value = re.sub(rb"[ \-]", b"", text[start:end]).decode("ascii").upper()
    try:
        born = date(int(value[6:10]), int(value[10:12]), int(value[12:14]))
    except ValueError:
        return None
    total = sum(w * int(d) for w, d in zip(_WEIGHTS, value[:17], strict=True))
    right = value[:2] in _PROVINCES and born.year < 2100 and value[17] == "10X98765432"[total % 11]
    return (end, value.encode()) if right else None


def iban(text: bytearray, start: int, end: int) -> Found:
    """Wants the length of the country and the check digits of ISO 13616; what follows is not part of it."""
    length, at, value = _IBAN_LENGTHS.get(text[start : start + 2].decode("ascii"), 99), start, ""
    while at < end and len(value) < length:
        value += chr(text[at]).strip()
        at += 1
    rest = text[at : at + 1]
    if len(value) < length or rest.isalnum() or rest == b"\x80":
        return None
    number = int("".join(str(int(c, 36)) for c in value[4:] + value[:4]))
    return (at, value.encode()) if number % 97 == 1 else None


def key_block(text: bytearray, start: int, end: int) -> Found:
    """Takes all that the pattern does."""
    return end, b"".join(text[start:end].split())


def token(text: bytearray, start: int, end: int) -> Found:
    """Wants a random look of what follows the prefix `sk-`, which English has too."""
    value = bytes(text[start:end])
    if value.startswith((b"sk-", b"glpat-")) and not is_random(value[3:]):
        return None
    return end, value


def assigned(text: bytearray, start: int, end: int) -> Found:
    """Wants a value with digits, letters and at least 3 bits of entropy a character; no address, path or name."""
    value = bytes(text[start:end]).rstrip(b".!")
    if b"://" in value or value.startswith((b"/", b".")) or not is_random(value):
        return None
    return start + len(value), value


def is_random(value: bytes) -> bool:
    """Whether `value` mixes letters and digits, with an entropy of at least 3 bits per character."""
    if len(value) < 8 or not re.search(rb"[0-9]", value) or not re.search(rb"[A-Za-z]", value):
        return False
    shares = [n / len(value) for n in Counter(value).values()]
    return -sum(p * math.log2(p) for p in shares) >= 3.0
