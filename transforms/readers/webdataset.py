"""WebDataset archives: the members of a tar with one key are a sample; its position is the byte offset of the first.

Members are read as streams into bounded memory. Nothing is written anywhere, so a member's name is only
a name; one that leads out of its folder, a link or a device makes its sample a fault all the same.
"""

import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from transforms.core.features import Blob
from transforms.readers.base import CHUNK_BYTES, BrokenError, Extent, Fault, Item, Record, Row, stream, unreadable
from transforms.readers.base import too_large as too_large_words
from transforms.readers.columns import MEDIA, Columns
from transforms.readers.html import Page
from transforms.readers.jsonl import bad_encoding, parse
from transforms.readers.kinds import named_kind

_LISTS = {"image": "images", "video": "video", "audio": "audio"}
_TEXTS = ("txt", "text", "caption", "md")
_PAGES = ("html", "htm")
_LABELS = ("cls", "label")
_MEDIA_NAMES = (*MEDIA, "videos", "audios")
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"X")
_HEADER_BYTES = 1 << 20  # of a long name or pax header
# What `tarfile` raises on damaged headers beside its own errors.
_BROKEN = (tarfile.TarError, ValueError, OverflowError, LookupError, EOFError)


class _NoEndError(BrokenError):
    """The archive ends between two members, but without its end mark."""


class _Header(tarfile.TarInfo):
    """A header; a damaged one is an error, where `tarfile` would silently end the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        try:
            found = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise (_NoEndError if not buf else BrokenError)(f"tar: {error}") from error
        if found.size < 0 or (found.type in _EXTENDED and found.size > _HEADER_BYTES):
            raise BrokenError(f"tar: a header claims {found.size} bytes")
        return found


class _Member(NamedTuple):
    """A member in its sample. `begins`: it is the first one of a sample."""

    begins: bool
    key: str
    suffix: str  # all behind the first dot of the name, lower case
    info: tarfile.TarInfo


@dataclass
class _Sample:
    """What was read of a sample so far."""

    position: int
    key: str
    members: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # suffix → name, bytes
    size: int = 0
    fault: Fault | None = None


def read_webdataset(extent: Extent) -> Iterator[Item]:
    """Yields the samples that begin in [start, end) of a tar archive."""
    sample: _Sample | None = None
    at = extent.start
    try:
        with stream(extent.path, extent.start) as file, closing(_opened(file, "r|")) as tar:
            for member in _members(tar):
                at = extent.start + member.info.offset
                if member.begins:
                    if sample:
                        yield _item(sample, extent)
                    sample = None
                    if extent.end is not None and at >= extent.end:
                        return
                    sample = _Sample(at, member.key)
                assert sample is not None
                _take(sample, member, tar, extent.max_row_bytes)
                at = extent.start + tar.offset
    except OSError as error:
        yield unreadable(error, at if sample is None else sample.position)
        return
    except (BrokenError, *_BROKEN) as error:
        if sample and isinstance(error, _NoEndError):
            yield _item(sample, extent)
            sample = None
        at = sample.position if sample else at
        yield Fault(at, "broken_archive", f"{error or 'tar: corrupt'}; samples from byte {at} onwards are skipped")
        return
    if sample:
        yield _item(sample, extent)


def piece_bounds(path: Path, piece_bytes: int) -> list[int]:
    """Returns the offset of the first sample of each piece of at least `piece_bytes`; the last holds what is broken."""
    bounds = [0]
    try:
        with path.open("rb") as file, closing(_opened(file, "r:")) as tar:
            for member in _members(tar):
                if member.begins and member.info.offset - bounds[-1] >= piece_bytes:
                    bounds.append(member.info.offset)
    except (BrokenError, OSError, *_BROKEN):
        pass
    return bounds


def holds_media(extent: Extent) -> bool:
    """Returns whether a sample of an archive may hold or name media."""
    if any(name in MEDIA for name in Columns.of(extent.source).named.values()):
        return True
    try:
        with stream(extent.path, extent.start) as file, closing(_opened(file, "r|")) as tar:
            end = None if extent.end is None else extent.end - extent.start
            for member in _members(tar):
                if end is not None and member.begins and member.info.offset >= end:
                    return False
                if named_kind(f"x.{member.suffix}"):
                    return True
    except (BrokenError, OSError, *_BROKEN):
        pass
    return False


def _opened(file: BinaryIO, mode: str) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode=mode, tarinfo=_Header, bufsize=CHUNK_BYTES)  # type: ignore[call-overload, no-any-return]


def _members(tar: tarfile.TarFile) -> Iterator[_Member]:
    """Yields the members that belong to samples: no folders, and no names that begin with a dot."""
    key, seen = "", set[str]()
    while info := tar.next():
        tar.members.clear()  # type: ignore[attr-defined]
        name = info.name.removeprefix("./")
        folder, slash, base = name.rpartition("/")
        stem, _, suffix = base.partition(".")
        if info.isdir() or not stem:
            continue
        begins = not seen or f"{folder}{slash}{stem}" != key or suffix.lower() in seen
        key, seen = f"{folder}{slash}{stem}", {*(() if begins else seen), suffix.lower()}
        yield _Member(begins, key, suffix.lower(), info)


def _take(sample: _Sample, member: _Member, tar: tarfile.TarFile, limit: int) -> None:
    """Reads a member into its sample, or notes why that cannot be."""
    info = member.info
    size = sample.size + info.size
    if refused := _refused(member) or (("too_large", too_large_words(size, limit)) if size > limit else None):
        reason, words = refused
        sample.fault = sample.fault or Fault(sample.position, reason, f"{info.name[:200]}: {words}")
        return
    file = tar.extractfile(info)
    assert file is not None
    sample.members[member.suffix] = info.name, file.read()
    sample.size = size


def _refused(member: _Member) -> tuple[str, str] | None:
    info = member.info
    if info.name.startswith("/") or ".." in info.name.split("/"):
        return "unsafe_path", "the name points outside its folder"
    if not info.isreg():
        return "unsupported_format", "a link" if info.issym() or info.islnk() else "neither a file nor a folder"
    return None if member.suffix else ("unsupported_format", "a name without a suffix does not show the file type")


# A sample's columns.


def _item(sample: _Sample, extent: Extent) -> Item:
    if sample.fault:
        return sample.fault
    named = Columns.of(extent.source).named
    fields: Row = {"__key__": sample.key}
    later: list[tuple[str, bytes]] = []
    for suffix, (name, data) in sorted(sample.members.items(), key=lambda pair: pair[0] not in _TEXTS):
        if suffix.rpartition(".")[2] == "json" and suffix not in named:
            later.append((suffix, data))
            continue
        try:
            _add(fields, suffix, {"bytes": data, "path": name}, named.get(suffix), extent.source.encoding)
        except UnicodeDecodeError as error:
            return bad_encoding(sample.position, data, error)
    for suffix, data in later:
        if fault := _add_json(fields, suffix, data, sample.position, named):
            return fault
    return Record(sample.position, fields)


def _add(fields: Row, suffix: str, blob: Blob, mapped: str | None, encoding: str) -> None:
    """Puts a member into the column that `columns` names after its suffix, else into that of its kind."""
    kind, last, data = named_kind(f"x.{suffix}"), suffix.rpartition(".")[2], blob["bytes"]
    if mapped in MEDIA:
        fields[suffix] = blob
    elif mapped:
        fields[suffix] = Page(data) if last in _PAGES and mapped == "text" else data.decode(encoding).strip()
    elif kind:
        fields.setdefault(_LISTS[kind], []).append(blob)
    elif last in _TEXTS and "text" not in fields:
        fields["text"] = data.decode(encoding)
    elif last in _PAGES and "text" not in fields:
        fields["text"] = Page(data)
    elif suffix in _LABELS:
        fields["label"] = data.decode(encoding).strip()
    else:
        fields[suffix] = _readable(data)


def _readable(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _add_json(fields: Row, suffix: str, data: bytes, position: int, named: Mapping[str, str]) -> Fault | None:
    """Puts the keys of a JSON member among the columns; returns the fault of one that is not JSON.

    A key whose column is taken, or that would name a medium outside the archive, gets the prefix `json.`.
    """
    found = parse(position, data, "utf-8")
    if isinstance(found, Fault):
        if found.reason != "not_an_object":
            return found
        fields[suffix] = json.loads(data)
        return None
    if suffix != "json":
        fields[suffix] = found.fields
        return None
    for key, value in found.fields.items():
        is_taken = key in fields or (key in _MEDIA_NAMES and key not in named)
        fields[f"json.{key}" if is_taken else key] = value
    return None
