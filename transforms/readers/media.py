"""Pictures, sound and video as files of their own: one record per file, at position 0."""

from collections.abc import Iterator

from transforms.decode.probe import HEAD_BYTES
from transforms.readers.base import Extent, Item, Record, unreadable
from transforms.readers.kinds import media_kind


def read_media(extent: Extent) -> Iterator[Item]:
    """Yields the record of one file: its path, in the column of its kind; the decoder has the last word on it."""
    try:
        with extent.path.open("rb") as file:
            kind = media_kind(file.read(HEAD_BYTES), extent.path.name)
    except OSError as error:
        yield unreadable(error)
        return
    yield Record(0, {kind or "video": str(extent.path)})
