"""Which reader takes a file: by its content first, by its name where the content does not tell."""

from pathlib import PurePosixPath

from transforms.decode.probe import sniff
from transforms.readers.source import SourceConfig

_PACKED = (".gz", ".zst", ".gzip", ".zstd")
_PACKED_TARS = (".tgz", ".tzst")
_ROWS = {
    ".jsonl": "jsonl", ".jsonlines": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet",
    ".csv": "csv", ".tsv": "csv", ".txt": "text", ".text": "text", ".md": "text", ".markdown": "text",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".warc": "warc", ".wet": "warc", ".tar": "webdataset",
}  # fmt: skip
_IMAGES = "jpg jpeg png gif webp bmp tif tiff avif heic heif jp2 jpf ico psd ppm"
_SOUNDS = "mp3 wav flac ogg oga opus m4a aac amr aif aiff wma"
_VIDEOS = "mp4 m4v mov mkv webm avi flv wmv asf mpg mpeg 3gp mts m2ts"
_SUFFIXES = {"image": _IMAGES, "audio": _SOUNDS, "video": _VIDEOS}
_MEDIA = {f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def reader_of(source: SourceConfig, head: bytes, name: str, *, packed: bool) -> tuple[str, str]:
    """Returns the reader of a file that begins with `head` (decompressed), or a reason code and the words."""
    stem = _stem(name) if packed else name
    if source.format not in ("auto", "media"):
        return source.format, ""
    found = _by_content(head, stem)
    if packed and found in ("media", "parquet"):
        return "unsupported_format", f"a compressed {found} file: decompress it first"
    if found == "" or (source.format == "media" and found != "media"):
        suffix = PurePosixPath(stem).suffix or "unnamed"
        return (
            "unsupported_format",
            f"no reader for {suffix} files ({sniff(head, stem)}): convert it or set `format`",
        )
    return found, ""


def _stem(name: str) -> str:
    """Returns the name that a compressed file has when it is decompressed."""
    if name.lower().endswith(_PACKED_TARS):
        return f"{PurePosixPath(name).stem}.tar"
    return PurePosixPath(name).stem if name.lower().endswith(_PACKED) else name


def media_kind(head: bytes, name: str) -> str:
    """Returns image, audio or video for a media file, or an empty string. Sound in a container may count as video."""
    kind = sniff(head, name)
    return kind if kind in ("image", "audio", "video") else named_kind(name)


def named_kind(name: str) -> str:
    """Returns image, audio or video by the suffix of `name` alone, or an empty string."""
    return _MEDIA.get(PurePosixPath(name).suffix.lower(), "")


def _by_content(head: bytes, name: str) -> str:
    kind, suffix = sniff(head, name), PurePosixPath(name).suffix.lower()
    if kind in ("image", "audio", "video"):
        return "media"
    if kind in ("parquet", "warc"):
        return kind
    if kind == "tar":
        return "webdataset"
    by_name = _ROWS.get(suffix, "")
    if by_name in ("", "json", "jsonl") and kind in ("json", "jsonl"):
        return kind
    if not by_name and kind == "html":
        return kind
    return by_name or ("media" if suffix in _MEDIA else "")
