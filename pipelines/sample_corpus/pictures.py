"""Computed pictures in every common format, two photos that scikit-learn ships, and broken ones."""

import importlib.util
import io
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pipelines.sample_corpus.files import MediaFile
from pipelines.sample_corpus.texts import Document

Rng = np.random.Generator
Grid = NDArray[np.float64]  # (h, w) in [0, 1]
Drawn = tuple[Image.Image, str]  # and its caption

_COLORS = {
    "red": (206, 45, 48), "orange": (235, 137, 33), "yellow": (240, 208, 60), "green": (60, 150, 84),
    "blue": (44, 96, 178), "violet": (120, 74, 160), "white": (245, 245, 240), "black": (24, 24, 28),
}  # fmt: skip
_PHOTOS = {
    "china.jpg": "A Chinese temple tower with a green and red roof stands among trees above a misty lake.",
    "flower.jpg": "An orange dahlia in full bloom before a dark green background.",
}
_FORMATS: tuple[tuple[str, str, dict[str, int | bool]], ...] = (
    ("png", "PNG", {}), ("jpg", "JPEG", {"quality": 90}), ("webp", "WEBP", {"quality": 85}),
    ("jpg", "JPEG", {"quality": 75, "progressive": True}), ("bmp", "BMP", {}), ("tiff", "TIFF", {}), ("gif", "GIF", {}),
)  # fmt: skip
_ORIENTATION = 0x0112


def pictures(count: int, seed: int, documents: list[Document]) -> Iterator[MediaFile]:
    """Yields `count` sound pictures, then the faulty ones. `documents` give words to the pictures of pages."""
    photos = _photos()[:count]
    yield from photos
    kinds = (*_PATTERNS, "page")
    for number in range(count - len(photos)):
        rng, kind = np.random.default_rng([seed, number]), kinds[number % len(kinds)]
        picture, caption = _page(rng, documents) if kind == "page" else _PATTERNS[kind](rng)
        ending, form, options = _FORMATS[number % len(_FORMATS)]
        yield MediaFile(f"pictures/{kind}-{number:02d}.{ending}", _saved(picture, form, **options), "image", caption)
    yield from _faulty(seed)


def _saved(picture: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def _photos() -> list[MediaFile]:
    found = importlib.util.find_spec("sklearn")
    folder = Path(found.origin).parent / "datasets" / "images" if found and found.origin else Path()
    return [
        MediaFile(f"pictures/photo-{name}", (folder / name).read_bytes(), "image", caption)
        for name, caption in _PHOTOS.items()
        if (folder / name).is_file()
    ]


def _grid(rng: Rng) -> tuple[Grid, Grid, tuple[int, int]]:
    """Returns x and y in [-1, 1] over a picture of some size, and the size."""
    width, height = int(rng.integers(160, 480)), int(rng.integers(160, 400))
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    return x, y, (width, height)


def _pair(rng: Rng) -> tuple[str, str]:
    first, second = rng.choice(list(_COLORS), 2, replace=False)
    return str(first), str(second)


def _blend(share: Grid, first: str, second: str) -> Image.Image:
    """Returns the picture that goes from color `first` where `share` is 0 to `second` where it is 1."""
    low, high = (np.array(_COLORS[c], np.float64) for c in (first, second))
    mixed = low + np.clip(share, 0, 1)[..., None] * (high - low)
    return Image.fromarray(np.rint(mixed).astype(np.uint8))


def _gradient(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    angle = rng.uniform(0, 2 * np.pi)
    share = (np.cos(angle) * x + np.sin(angle) * y) / 2.8 + 0.5
    return _blend(share, first, second), f"A smooth gradient from {first} to {second}."


def _rings(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    waves = int(rng.integers(3, 12))
    share = 0.5 + 0.5 * np.sin(np.hypot(x - rng.uniform(-0.5, 0.5), y) * waves * np.pi)
    return _blend(
        share, first, second
    ), f"{waves} rings of {first} and {second} around one center, like waves on water."


def _stripes(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    count = int(rng.integers(4, 16))
    along = x if rng.random() < 0.5 else y
    name = "upright" if along is x else "level"
    return _blend((along * count // 1) % 2, first, second), f"{name.capitalize()} stripes in {first} and {second}."


def _checks(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    count = int(rng.integers(3, 10))
    share = ((x * count // 1) + (y * count // 1)) % 2
    return _blend(share, first, second), f"A chessboard of {first} and {second} squares."


def _clouds(rng: Rng) -> Drawn:
    """Value noise: random grids of growing fineness, each half as strong as the one before."""
    _, _, size = _grid(rng)
    first, second = _pair(rng)
    share = np.zeros(size[::-1])
    for octave in range(5):
        side = 3 * 2**octave
        coarse = Image.fromarray(rng.random((side, side)).astype(np.float32))
        share += np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)) / 2**octave
    spread = np.ptp(share)
    return _blend((share - share.min()) / spread, first, second), f"Soft clouds of {second} drift over {first}."


def _noise(rng: Rng) -> Drawn:
    _, _, size = _grid(rng)
    values = rng.integers(0, 256, (*size[::-1], 3), np.uint8)
    return Image.fromarray(values), "Colorful random noise without any shape, like an untuned television."


def _cells(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    count = int(rng.integers(8, 20))
    centers = rng.uniform(-1, 1, (count, 2))
    near = np.partition(np.hypot(x[..., None] - centers[:, 0], y[..., None] - centers[:, 1]), 1)
    share = (near[..., 1] - near[..., 0]) * 6
    return _blend(share, first, second), f"{count} {second} cells divided by {first} borders, like cracked mud."


def _mandelbrot(rng: Rng) -> Drawn:
    x, y, _ = _grid(rng)
    first, second = _pair(rng)
    point = (x * 1.4 - 0.6 + 1j * y * 1.2) * rng.uniform(0.7, 1.0)
    value, steps = np.zeros_like(point), np.zeros(x.shape)
    for _ in range(40):
        inside = np.abs(value) < 2
        value[inside] = value[inside] ** 2 + point[inside]
        steps += inside
    return _blend((steps / 40) ** 0.7, first, second), f"The Mandelbrot set in {second} on {first}."


def _shapes(rng: Rng) -> Drawn:
    _, _, (width, height) = _grid(rng)
    ground, color = _pair(rng)
    picture = Image.new("RGB", (width, height), _COLORS[ground])
    brush = ImageDraw.Draw(picture)
    kind, count = str(rng.choice(["circle", "square", "triangle"])), int(rng.integers(1, 6))
    for _ in range(count):
        side = int(rng.integers(30, 90))
        left, top = int(rng.integers(0, width - side)), int(rng.integers(0, height - side))
        corners = {"circle": 0, "square": 4, "triangle": 3}[kind]
        if corners:
            brush.regular_polygon((left + side // 2, top + side // 2, side // 2), corners, fill=_COLORS[color])
        else:
            brush.ellipse((left, top, left + side, top + side), fill=_COLORS[color])
    return picture, f"{count} {color} {kind}{'s' if count > 1 else ''} on a {ground} background."


_PATTERNS: dict[str, Callable[[Rng], Drawn]] = {
    "gradient": _gradient, "rings": _rings, "shapes": _shapes, "clouds": _clouds, "mandelbrot": _mandelbrot,
    "stripes": _stripes, "cells": _cells, "noise": _noise, "checks": _checks,
}  # fmt: skip


def _page(rng: Rng, documents: list[Document]) -> Drawn:
    """Returns a page with the first lines of a document."""
    text = documents[int(rng.integers(len(documents)))].text
    words = text.split()[:70]
    picture = Image.new("RGB", (420, 300), "white")
    lines = [" ".join(words[k : k + 7]) for k in range(0, len(words), 7)]
    ImageDraw.Draw(picture).multiline_text((20, 20), "\n".join(lines), "black", ImageFont.load_default(16))
    return picture, f"A page of printed text that begins with the words “{' '.join(words[:6])}”."


def _faulty(seed: int) -> Iterator[MediaFile]:
    """Yields pictures that are broken, misnamed, turned, copied, or far too large."""
    picture, caption = _shapes(np.random.default_rng([seed, 999]))
    jpeg = _saved(picture, "JPEG", quality=90)
    exif = Image.Exif()
    exif[_ORIENTATION] = 6
    turned = _saved(picture.rotate(90, expand=True), "JPEG", quality=90, exif=exif)
    clear = picture.convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    made = {
        "original.jpg": (jpeg, None),
        "truncated.jpg": (jpeg[: len(jpeg) // 2], "truncated"),
        "zero-bytes.png": (b"", "zero_bytes"),
        "wrong-extension.jpg": (_saved(picture, "PNG"), "wrong_extension"),
        "rotated.jpg": (turned, "rotated"),
        "transparent.png": (_saved(clear, "PNG"), "transparent"),
        "inks.jpg": (_saved(picture.convert("CMYK"), "JPEG", quality=90), "cmyk"),
        "smaller-copy.jpg": (_saved(picture.reduce(2), "JPEG", quality=70), "near_duplicate"),
        "exact-copy.jpg": (jpeg, "exact_duplicate"),
        "bomb.gif": (_bomb(), "bomb"),
    }
    for name, (data, fault) in made.items():
        yield MediaFile(f"pictures/{name}", data, "image", caption if fault is None else None, fault)


def _bomb() -> bytes:
    """Returns a GIF of a few bytes that declares 65535 × 65535 pixels."""
    side = struct.pack("<HH", 65535, 65535)
    return b"GIF89a" + side + b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0" + side + b"\0\x02\x02D\x01\0;"
