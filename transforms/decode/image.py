"""Pictures: any format that Pillow reads, to an upright 8-bit RGB picture of bounded size, re-encoded."""

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageCms, ImageColor, UnidentifiedImageError

from transforms.decode.config import ImageConfig
from transforms.decode.errors import MediaError
from transforms.decode.probe import sniff

# Everything Pillow reads in its own process (MPO as JPEG); EPS would run Ghostscript.
FORMATS = (
    "JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF", "JPEG2000", "ICO", "PSD", "PPM", "QOI", "PCX", "SGI"
)  # fmt: skip
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow's plugins raise on damaged files, found by mutating real ones.
_BROKEN = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError,
    MemoryError, NotImplementedError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip
# Pillow's warning filters and pixel limit are global to the process; threads must not restore each other's.
_GLOBALS = threading.RLock()


@dataclass(frozen=True)
class Picture:
    """A stored picture; `width`, `height` and `codec` are those of the source, upright."""

    data: bytes
    width: int
    height: int
    codec: str


def decode_image(data: bytes, config: ImageConfig) -> Picture:
    """Returns the first frame of `data`, upright, RGB, at most `max_side` long, re-encoded.

    Transparent pixels show the background; an embedded color profile is applied; 16-bit values are
    scaled. The same bytes give the same bytes.

    Raises:
      MediaError: `empty_file`, `unsupported_format`, `too_many_pixels` or `broken_image`.
    """
    if not data:
        raise MediaError("empty_file", "the image is empty")
    with _settings(config):
        try:
            return _decode(data, config)
        except UnidentifiedImageError as error:
            raise _unidentified(data) from error
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            size = str(error).partition(" exceeds")[0]
            raise MediaError("too_many_pixels", f"{size}, the limit is {config.max_pixels}") from error
        except _BROKEN as error:
            raise MediaError("broken_image", f"{type(error).__name__}: {error}") from error


@contextmanager
def _settings(config: ImageConfig) -> Iterator[None]:
    """Makes every size check of Pillow's, in a file's inner pictures too, use our limit; other warnings are mute."""
    with _GLOBALS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, config.max_pixels
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before


def _unidentified(data: bytes) -> MediaError:
    known = sniff(data[:64], "") == "image" and data[4:8] != b"ftyp"
    if known and data[:4] not in (b"II*\0", b"MM\0*"):
        return MediaError("broken_image", "the header is corrupt")
    return MediaError("unsupported_format", "no decoder supports this image format")


def _decode(data: bytes, config: ImageConfig) -> Picture:
    with Image.open(io.BytesIO(data), formats=FORMATS) as source:
        codec, original = str(source.format).lower(), source.size
        # JPEG decodes at a half, quarter or eighth of its size: twice the target keeps what LANCZOS needs.
        width, height = fit(original, config.max_side)
        source.draft(source.mode, (2 * width, 2 * height))
        source.load()
        orientation = _orientation(source)
        picture = _flatten(_resize(_plain(source), fit(source.size, config.max_side)), config.background)
    if orientation in _UPRIGHT:
        picture = picture.transpose(_UPRIGHT[orientation])
    if orientation >= 5:
        original = original[1], original[0]
    return Picture(encode(picture, config), *original, codec)


def fit(size: tuple[int, int], max_side: int) -> tuple[int, int]:
    """Returns `size` shrunk to a long side of at most `max_side`, never enlarged, each side at least 1."""
    longest = max(size)
    if longest <= max_side:
        return size
    width, height = (max(1, round(side * max_side / longest)) for side in size)
    return width, height


def encode(picture: Image.Image, config: ImageConfig) -> bytes:
    """Returns an RGB picture as JPEG or PNG bytes that hold nothing but its pixels."""
    picture.info.clear()  # comments, profiles and EXIF would be written too
    buffer = io.BytesIO()
    if config.format == "jpeg":
        picture.save(buffer, "JPEG", quality=config.quality)
    else:
        picture.save(buffer, "PNG")
    return buffer.getvalue()


def _orientation(picture: Image.Image) -> int:
    """Returns the EXIF orientation 1 to 8; 1 where there is none that can be read."""
    try:
        found = picture.getexif().get(_ORIENTATION, 1)
    except _BROKEN:  # damaged EXIF must not cost the pixels
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _plain(picture: Image.Image) -> Image.Image:
    """Returns the picture in a mode that can be resized: L, RGB, LA or RGBA, in sRGB."""
    if picture.mode.startswith(("I", "F")):
        return _from_deep(picture)
    if picture.mode in ("1", "P", "PA", "La", "RGBa", "LA", "RGBA") or "transparency" in picture.info:
        return picture.convert("RGBA") if picture.has_transparency_data else _to_srgb(picture.convert("RGB"))
    return _to_srgb(picture)


def _from_deep(picture: Image.Image) -> Image.Image:
    """Returns a picture of 16-bit, 32-bit or float values as L, or LA where one value is transparent."""
    values = np.asarray(picture).astype(np.float64)
    values[~np.isfinite(values)] = 0.0
    low, high = _range(picture.mode, values)
    scaled = np.clip((values - low) * (255.0 / (high - low)), 0, 255)
    gray = Image.fromarray(np.rint(scaled).astype(np.uint8))
    transparent = picture.info.get("transparency")
    if isinstance(transparent, int):
        gray.putalpha(Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8)))
    return gray


def _range(mode: str, values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> tuple[float, float]:
    """Returns the values that become 0 and 255: those of the type where they are known, else the picture's own."""
    low, high = float(values.min()), float(values.max())
    ceilings = {"F": (1.0, 255.0), "I": (65535.0,)}.get(mode, (65535.0,))
    ceiling = next((c for c in ceilings if low >= 0 and high <= c), None)
    return (0.0, ceiling) if ceiling else (low, high if high > low else low + 1)


def _to_srgb(picture: Image.Image) -> Image.Image:
    """Returns the picture in sRGB: Lab by definition, others by their own profile where it is sound."""
    source = picture.info.get("icc_profile")
    if picture.mode == "LAB":
        return _transform(picture, ImageCms.createProfile("LAB"))
    if source and picture.mode in ("RGB", "CMYK", "L"):
        try:
            return _transform(picture, ImageCms.ImageCmsProfile(io.BytesIO(source)))
        except (ImageCms.PyCMSError, OSError, ValueError):  # a profile of another mode, or a damaged one
            pass
    return picture if picture.mode in ("RGB", "L") else picture.convert("RGB")


def _transform(picture: Image.Image, profile: object) -> Image.Image:
    done = ImageCms.profileToProfile(picture, profile, ImageCms.createProfile("sRGB"), outputMode="RGB")  # type: ignore[arg-type]
    assert done is not None
    return done


def _resize(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


def _flatten(picture: Image.Image, background: str) -> Image.Image:
    """Returns RGB: `background` shows where the picture is transparent."""
    if "A" not in picture.getbands():
        return picture.convert("RGB")
    below = Image.new("RGBA", picture.size, (*ImageColor.getrgb(background)[:3], 255))
    return Image.alpha_composite(below, picture.convert("RGBA")).convert("RGB")
