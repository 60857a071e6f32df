"""The columns of a source's row become our fields; every column that no field takes stays in `meta`."""

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import orjson

from transforms.readers.base import Record
from transforms.readers.columns import Columns, has, no_content

_SURROGATE = re.compile("[\ud800-\udfff]")
MESSAGE_KINDS = {"image": "image", "image_url": "image", "video": "video", "video_url": "video",
                  "audio": "audio", "audio_url": "audio"}  # fmt: skip

Row = Mapping[str, object]


class Media(NamedTuple):
    """A picture, video or sound of a row: its bytes, or the path that the row names, or both."""

    kind: str  # image | video | audio
    path: str | None
    data: bytes | None = None


class Fields(NamedTuple):
    """A row in our terms."""

    own_id: str | None
    text: str | None
    label: str | None
    domain: str | None
    media: tuple[Media, ...]
    in_messages: bool  # media stand between texts
    repaired: int  # characters replaced or removed
    meta: str | None


class RowError(Exception):
    """The row cannot become a sample; holds the reason code and the words."""

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason, error)
        self.reason, self.error = reason, error


@dataclass
class Repair:
    """Makes strings storable: a lone surrogate becomes U+FFFD, NUL goes. `count` holds the characters changed."""

    count: int = 0

    def fix(self, text: str) -> str:
        """Returns `text` repaired."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                text, changed = _SURROGATE.subn("\ufffd", text)
                self.count += changed
        if "\0" in text:
            self.count += text.count("\0")
            text = text.replace("\0", "")
        return text


def to_fields(record: Record, columns: Columns) -> Fields:
    """Returns the fields of a row.

    Raises:
      RowError: a needed column is missing, or a value has a type that its field cannot hold.
    """
    try:
        return _to_fields(record.fields, columns, record.plain)
    except RecursionError:
        raise RowError("bad_value", "the row is nested too deeply") from None


def _to_fields(row: dict[str, object], columns: Columns, plain: bool) -> Fields:
    repair, kept = Repair(), set[str]()
    media = tuple(_media(row, columns, kept))
    text, inner = _text(row, columns, kept)
    if text is None and not media and not inner and not _there(row, columns.by_field["text"]):
        raise RowError("missing_column", f"{no_content(columns)}; {has(row)}")
    taken = columns.taken - kept if kept else columns.taken
    return Fields(
        own_id=_scalar(row, columns.by_field["id"], repair) or None,
        text=None if text is None else repair.fix(text),
        label=_scalar(row, columns.by_field["label"], repair),
        domain=_scalar(row, columns.by_field["domain"], repair),
        media=(*media, *inner),
        in_messages=bool(inner),
        meta=_meta({c: v for c, v in row.items() if c not in taken}, plain, repair),
        repaired=repair.count,
    )


def _there(row: Row, names: tuple[str, ...]) -> bool:
    return any(n in row for n in names)


def _scalar(row: Row, names: tuple[str, ...], repair: Repair) -> str | None:
    """Returns an id, label or domain as text; a nested one as JSON."""
    value = row.get(names[0]) if names else None
    if value is None or value == "" or _is_nan(value):
        return None
    return repair.fix(value if isinstance(value, str) else as_json(value, repair))


# Text.


def _text(row: Row, columns: Columns, kept: set[str]) -> tuple[str | None, list[Media]]:
    """Returns the text and the media in its messages; records in `kept` what cannot be restored from it."""
    inner: list[Media] = []
    if columns.template:
        kept.update(columns.by_field["text"])
        if not _there(row, columns.by_field["text"]):
            return None, inner
        pieces = (text + (_string(row.get(c), inner) or "" if c else "") for text, c in columns.template)
        return "".join(pieces), inner
    value = next((row[c] for c in columns.by_field["text"] if c in row), None)
    if value is not None and not isinstance(value, str | int | float | bytes):
        kept.update(columns.by_field["text"])
    return _string(value, inner), inner


def _string(value: object, inner: list[Media]) -> str | None:
    """Returns a text value as one string: lists and messages joined by newlines."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise RowError("bad_value", "the text is a boolean")
    if isinstance(value, int | float):
        return None if _is_nan(value) else str(value)
    if isinstance(value, bytes):
        return _decode(value)
    if _is_message(value):
        return "\n".join(_message(value, inner))
    if isinstance(value, list) and all(isinstance(v, str) or _is_message(v) for v in value):
        return "\n".join(s for v in value for s in ([v] if isinstance(v, str) else _message(v, inner)))
    raise RowError("bad_value", f"the text is not a string, a list of strings or messages but {_name(value)}")


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        words = f"byte 0x{data[error.start]:02x} at {error.start} of the text is not valid UTF-8"
        raise RowError("bad_encoding", words) from None


def _is_message(value: object) -> TypeGuard[Row]:
    return isinstance(value, dict) and bool({"role", "from"} & set(value)) and bool({"content", "value"} & set(value))


def _message(message: Row, inner: list[Media]) -> Iterator[str]:
    """Yields the texts of one message of a conversation; its media go to `inner`."""
    content = message["content"] if "content" in message else message["value"]
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and all(isinstance(piece, dict) for piece in content):
        for piece in content:
            yield from _piece(piece, inner)
    elif content is not None:
        raise RowError("bad_value", f"the content of a message is {_name(content)}")


def _piece(piece: Row, inner: list[Media]) -> Iterator[str]:
    kind = piece.get("type")
    value = piece.get(kind) if isinstance(kind, str) and piece.get(kind) is not None else piece.get("value")
    if kind in MESSAGE_KINDS:
        value = value.get("url") if isinstance(value, dict) and "url" in value else value
        inner.append(_medium(MESSAGE_KINDS[kind], value))
    elif isinstance(value, str):
        yield value
    else:
        raise RowError("bad_value", f"part of a message has type {kind!r} and no text")


# Media.


def media_of(row: Row, columns: Columns) -> list[Media]:
    """Returns the media that a row names, those in messages included; none where a value is no media."""
    try:
        return [*_media(row, columns, set()), *_text(row, columns, set())[1]]
    except (RowError, RecursionError):
        return []


def _media(row: Row, columns: Columns, kept: set[str]) -> Iterator[Media]:
    for column, kind in columns.media:
        value = row.get(column)
        if value is None or value == "":
            continue
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict) and not set(one) <= {"bytes", "path"}:
                kept.add(column)
            if one is not None:
                yield _medium(kind, one, column)


def _medium(kind: str, value: object, column: str = "a message") -> Media:
    if isinstance(value, str):
        return Media(kind, value)
    if isinstance(value, bytes):
        return Media(kind, None, value)
    if isinstance(value, dict):
        path, data = value.get("path"), value.get("bytes")
        if isinstance(path, str | None) and isinstance(data, bytes | None) and (path or data):
            return Media(kind, path, data)
    remedy = f"map columns.{kind} to another column, or to '' if the source has none"
    raise RowError(
        "bad_value", f"{column} is not a valid {kind}: expected a path or bytes, got {_name(value)}; {remedy}"
    )


def _name(value: object) -> str:
    names = {list: "a list", dict: "an object", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


# Meta.


def _meta(rest: dict[str, object], plain: bool, repair: Repair) -> str | None:
    """Returns the JSON object of all columns that no field took; None if there are none."""
    if not rest:
        return None
    if plain:
        try:
            found = orjson.dumps(rest)
            if b"\\u0000" not in found:
                return found.decode()
        except TypeError:  # nested deeper than the fast writer goes
            pass
    return as_json(rest, repair)


def as_json(value: object, repair: Repair) -> str:
    """Returns `value` as compact JSON; what JSON has no type for is text, bytes are {"base64": …}."""
    return json.dumps(_jsonable(value, repair), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _jsonable(value: object, repair: Repair) -> object:
    if isinstance(value, str):
        return repair.fix(value)
    if isinstance(value, Mapping):
        return {repair.fix(str(k)): _jsonable(v, repair) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(v, repair) for v in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else repair.fix(_words(value))


def _words(value: object) -> str:
    """Returns a value that JSON has no type for as text."""
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
