"""Pictures: every mode, every orientation, every way to be broken."""

import io
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageOps
from support.clips import IMAGE, pixels

from transforms.decode.config import ImageConfig
from transforms.decode.errors import MediaError
from transforms.decode.image import decode_image, fit

EXACT = ImageConfig(max_side=512, max_pixels=1_000_000, format="png", quality=92, background="white")
LIMITS = {"max_side": 64, "max_pixels": 10_000, "format": "jpeg", "quality": 92, "background": "white"}


def saved(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def scene(width: int = 48, height: int = 32) -> Image.Image:
    """Returns a smooth picture that no flip or turn maps onto itself."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [255 * x / width, 255 * y / height, 255 * (x > y) * x / width]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def shown(picture: Image.Image, kind: str = "PNG", config: ImageConfig = EXACT, **options: Any) -> np.ndarray:
    return pixels(decode_image(saved(picture, kind, **options), config).data)


def gray(values: list[list[int]], mode: str = "L") -> Image.Image:
    types = {"L": np.uint8, "I;16": np.uint16, "I": np.int32, "F": np.float32}
    return Image.fromarray(np.array(values, types[mode]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_side": 0}, "max_side 0"), ({"max_pixels": 0}, "max_pixels 0"), ({"quality": 101}, "quality 101"),
        ({"background": "no color"}, "background 'no color'"),
    ],
)  # fmt: skip
def test_config_names_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageConfig(**{**LIMITS, **change})


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_orientation_is_applied(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}.get(kind, {})
    data = saved(scene(), kind, exif=exif, **options)
    with Image.open(io.BytesIO(data)) as stored:
        wanted = np.asarray(ImageOps.exif_transpose(stored)).astype(float)
    picture = decode_image(data, EXACT)
    assert (picture.width, picture.height) == wanted.shape[1::-1] == ((48, 32) if orientation < 5 else (32, 48))
    assert np.abs(pixels(picture.data) - wanted).max() <= 1


@pytest.mark.parametrize("orientation", [3, 6])
def test_orientation_survives_shrinking(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = decode_image(
        saved(scene(480, 320), "JPEG", exif=exif, quality=95), ImageConfig(**{**LIMITS, "max_pixels": 200_000})
    )
    small = np.asarray(scene(64, 43).rotate(180 if orientation == 3 else -90, expand=True)).astype(float)
    assert pixels(picture.data).shape == small.shape
    assert np.abs(pixels(picture.data) - small).mean() < 6
    assert (picture.width, picture.height) == ((480, 320) if orientation == 3 else (320, 480))


@pytest.mark.parametrize(
    "exif",
    [b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x12\0\x03\0\0\xff\xff"],
)
def test_broken_exif_keeps_the_pixels(exif: bytes) -> None:
    assert np.abs(shown(scene(), "JPEG", exif=exif, quality=95) - np.asarray(scene()).astype(float)).mean() < 4


def test_an_orientation_that_does_not_exist_is_ignored() -> None:
    exif = Image.Exif()
    exif[0x0112] = 42
    assert decode_image(saved(scene(), "JPEG", exif=exif), EXACT).width == 48


@pytest.mark.parametrize("mode", ["L", "P", "RGB", "RGBA", "LA", "CMYK", "1"])
def test_every_mode_becomes_the_same_rgb(mode: str) -> None:
    kind = "TIFF" if mode == "CMYK" else "PNG"
    picture = scene().convert(mode)
    wanted = np.asarray(picture.convert("RGB")).astype(float)
    assert np.abs(shown(picture, kind) - wanted).max() <= 2


def test_cmyk_jpeg_is_not_negative() -> None:
    assert np.abs(shown(scene().convert("CMYK"), "JPEG", quality=95) - np.asarray(scene()).astype(float)).mean() < 6


def test_lab_is_converted() -> None:
    lab = ImageCms.profileToProfile(
        scene(), ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert np.abs(shown(lab, "TIFF") - np.asarray(scene()).astype(float)).mean() < 3


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    picture = gray([[0, 257, 32896, 65535]], "I;16")
    assert shown(picture)[0, :, 0].tolist() == [0, 1, 128, 255]
    assert shown(picture, "TIFF")[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(
    ("mode", "values", "wanted"),
    [
        ("I", [0, 32896, 65535], [0, 128, 255]),
        ("I", [0, 1_000_000, 2_000_000], [0, 128, 255]),
        ("I", [-10, 0, 10], [0, 128, 255]),
        ("I", [70_000, 70_000, 70_000], [0, 0, 0]),
        ("F", [0.0, 0.5, 1.0], [0, 128, 255]),
        ("F", [0.0, 128.0, 255.0], [0, 128, 255]),
        ("F", [float("nan"), 0.5, float("inf")], [0, 128, 0]),
    ],
)
def test_deep_values_fill_the_range(mode: str, values: list[float], wanted: list[int]) -> None:
    assert shown(gray([values], mode), "TIFF")[0, :, 0].tolist() == wanted


def test_sixteen_bits_with_a_transparent_value() -> None:
    assert shown(gray([[0, 1000, 65535]], "I;16"), transparency=1000)[0, :, 0].tolist() == [0, 255, 255]


@pytest.mark.parametrize("background", ["white", "#204060"])
def test_transparent_pixels_show_the_background(background: str) -> None:
    config = ImageConfig(**{**LIMITS, "format": "png", "background": background})
    wanted = {"white": (255, 255, 255), "#204060": (32, 64, 96)}[background]
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert tuple(shown(clear, config=config)[0, 0]) == wanted
    assert tuple(shown(clear.convert("P"), config=config, transparency=bytes(256))[0, 0]) == wanted
    assert tuple(shown(Image.new("RGB", (4, 4), (9, 8, 7)), config=config, transparency=(9, 8, 7))[0, 0]) == wanted
    assert tuple(shown(Image.new("1", (4, 4), 1), config=config, transparency=255)[0, 0]) == wanted
    half = shown(Image.new("RGBA", (4, 4), (255, 0, 0, 128)), config=ImageConfig(**{**LIMITS, "format": "png"}))
    assert np.abs(half[0, 0] - (255, 127, 127)).max() <= 1


def test_shrinking_leaves_no_halo_of_the_hidden_color() -> None:
    picture = np.zeros((256, 256, 4), np.uint8)
    picture[..., 0] = 255  # red, hidden outside the disc
    y, x = np.mgrid[0:256, 0:256]
    disc = (x - 128) ** 2 + (y - 128) ** 2 < 100**2
    picture[disc] = (0, 0, 255, 255)
    out = shown(Image.fromarray(picture), config=ImageConfig(**{**LIMITS, "max_pixels": 100_000, "format": "png"}))
    assert out.shape == (64, 64, 3)
    assert (out[..., 0] <= out[..., 1] + 8).all()  # between blue and white there is no red


def test_a_color_profile_is_applied() -> None:
    swapped = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    same = shown(scene(), icc_profile=swapped.tobytes())
    assert np.abs(same - np.asarray(scene()).astype(float)).max() <= 1
    assert np.abs(shown(scene(), icc_profile=b"no profile") - np.asarray(scene()).astype(float)).max() == 0


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_of_an_animation(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), c) for c in ("red", "lime", "blue")]
    options = {"WEBP": {"lossless": True}}.get(kind, {})
    data = shown(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert tuple(data[4, 4]) == (255, 0, 0)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 600))
def test_fit_keeps_the_shape(width: int, height: int, side: int) -> None:
    w, h = fit((width, height), side)
    assert 1 <= w <= width
    assert 1 <= h <= height
    assert max(w, h) == min(side, max(width, height))
    if max(width, height) > side:
        assert abs(w - max(1, width * side / max(width, height))) <= 0.5
        assert abs(h - max(1, height * side / max(width, height))) <= 0.5
    else:
        assert (w, h) == (width, height)


@pytest.mark.parametrize(("size", "wanted"), [((64, 1), (64, 1)), ((3000, 2), (64, 1)), ((1, 1), (1, 1))])
def test_extreme_shapes(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    picture = decode_image(saved(scene(*size)), ImageConfig(**LIMITS))
    assert pixels(picture.data).shape[1::-1] == wanted
    assert (picture.width, picture.height, picture.codec) == (*size, "png")


def test_the_bytes_hold_nothing_but_pixels() -> None:
    exif = Image.Exif()
    exif[0x010E] = "a secret description"
    data = saved(scene(), "JPEG", exif=exif, comment=b"a secret comment", dpi=(300, 300))
    for config in (IMAGE, EXACT):
        out = decode_image(data, config).data
        assert b"secret" not in out
        assert out == decode_image(data, config).data


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.9])
def test_truncated_is_an_error(kind: str, share: float) -> None:
    rng = np.random.default_rng(7)
    data = saved(Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8)), kind)
    with pytest.raises(MediaError) as error:
        decode_image(data[: int(len(data) * share)], EXACT)
    assert error.value.reason in ("empty_file", "broken_image", "unsupported_format")


def bomb(kind: str) -> bytes:
    """Returns a few bytes that declare more than a gigapixel."""
    if kind == "gif":
        return (
            b"GIF89a"
            + struct.pack("<HH", 65535, 65535)
            + b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0"
            + struct.pack("<HH", 65535, 65535)
            + b"\0\x02\x02D\x01\0;"
        )
    png = saved(Image.new("L", (1, 1)))
    header = struct.pack(">II", 100_000, 100_000) + png[24:29]
    import zlib

    return png[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + png[33:]


@pytest.mark.parametrize("kind", ["gif", "png"])
def test_a_bomb_is_refused_by_its_header(kind: str) -> None:
    with pytest.raises(MediaError, match=r"too_many_pixels: Image size \(\d+ pixels\), the limit is 1000000"):
        decode_image(bomb(kind), EXACT)


def test_the_limit_is_exact() -> None:
    config = ImageConfig(**{**LIMITS, "max_pixels": 48 * 32})
    assert decode_image(saved(scene()), config).width == 48
    with pytest.raises(MediaError, match=re.escape("1584 pixels")):
        decode_image(saved(scene(48, 33)), config)


def test_a_bomb_inside_an_icon_is_refused() -> None:
    inner = bomb("png")
    icon = struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(inner), 22) + inner
    with pytest.raises(MediaError, match="too_many_pixels"):
        decode_image(icon, EXACT)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty_file"), (b"no picture at all", "unsupported_format"), (b"\x89PNG\r\n\x1a\nxx", "broken_image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "unsupported_format"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "unsupported_format"),
        (b"\x00\x00\x00\x1cftypheic" + bytes(64), "unsupported_format"),
    ],
)  # fmt: skip
def test_what_is_no_picture(data: bytes, reason: str) -> None:
    with pytest.raises(MediaError) as error:
        decode_image(data, EXACT)
    assert error.value.reason == reason


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "BMP", "ICO"]), st.data())
def test_damage_is_an_error_of_ours_or_a_picture(kind: str, data: st.DataObject) -> None:
    whole = bytearray(saved(scene(16, 16), kind))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        picture = decode_image(bytes(whole), EXACT)
    except MediaError:
        return
    assert max(pixels(picture.data).shape) <= 512


def test_pillows_settings_and_warnings_stay_as_they_were() -> None:
    before = Image.MAX_IMAGE_PIXELS, warnings.filters[:]
    with pytest.raises(MediaError):
        decode_image(bomb("gif"), EXACT)
    decode_image(saved(scene()), EXACT)
    assert (Image.MAX_IMAGE_PIXELS, warnings.filters[:]) == before


def real(shared: Path, name: str, config: ImageConfig = IMAGE) -> Any:
    return decode_image((shared / "images" / name).read_bytes(), config)


def test_the_eight_landscapes_are_one_picture(shared: Path) -> None:
    upright = [real(shared, f"Landscape_{k}.jpg") for k in range(1, 9)]
    assert {(p.width, p.height) for p in upright} == {(1800, 1200)}
    first = pixels(upright[0].data)
    assert first.shape == (341, 512, 3)
    # They differ by the number drawn on them.
    assert max(np.abs(pixels(p.data) - first).mean() for p in upright) < 4


@pytest.mark.parametrize(
    ("name", "like", "most"),
    [
        ("pil-pil_sample_cmyk.jpg", "pil-pil_sample_rgb.jpg", 8.0),
        ("pil-hopper.Lab.tif", "pil-hopper.tif", 6.0),
        ("pil-hopper_orientation_6.jpg", "pil-hopper.jpg", 8.0),
        ("pil-hopper_orientation_2.jpg", "pil-hopper.jpg", 8.0),
        ("pil-hopper.psd", "pil-hopper.jpg", 6.0),
        ("pil-hopper.webp", "pil-hopper.jpg", 8.0),
        ("pil-avif-hopper.avif", "pil-hopper.jpg", 8.0),
        ("pil-pil123p.png", "pil-pil123rgba.png", 4.0),
        ("pil-iss634.webp", "pil-iss634.gif", 0.0),
    ],
)
def test_one_picture_in_two_formats(shared: Path, name: str, like: str, most: float) -> None:
    assert np.abs(pixels(real(shared, name).data) - pixels(real(shared, like).data)).mean() <= most


@pytest.mark.parametrize(
    ("name", "size", "codec"),
    [
        ("pil-avif-rot1mir0.avif", (640, 427), "avif"), ("wrong-ext-jpeg.tiff", (320, 240), "jpeg"),
        ("pil-frozenpond.mpo", (640, 480), "mpo"), ("pil-g4-multi.tiff", (3307, 4677), "tiff"),
        ("dingo-tall.png", (67, 959), "png"), ("pil-tRNS_null_1x1.png", (1, 1), "png"),
        ("pil-junk_jpeg_header.jpg", (1024, 768), "jpeg"), ("pil-balloon.jpf", (2717, 3701), "jpeg2000"),
        ("ft-fixture.apng", (100, 100), "png"), ("pil-hopper.ico", (16, 16), "ico"),
    ],
)  # fmt: skip
def test_real_pictures(shared: Path, name: str, size: tuple[int, int], codec: str) -> None:
    picture = real(shared, name)
    assert ((picture.width, picture.height), picture.codec) == (size, codec)
    assert pixels(picture.data).shape[1::-1] == fit(size, 512)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pil-decompression_bomb.gif", "too_many_pixels"), ("pil-bmp-b-reallybig.bmp", "too_many_pixels"),
        ("pil-truncated_image.png", "broken_image"), ("pil-truncated_jpeg.jpg", "broken_image"),
        ("pil-broken.png", "broken_image"), ("ft-mif1.heic", "unsupported_format"),
        ("skimage-multipage_rgb.tif", "unsupported_format"),
    ],
)  # fmt: skip
def test_real_pictures_that_are_refused(shared: Path, name: str, reason: str) -> None:
    with pytest.raises(MediaError) as error:
        real(shared, name)
    assert error.value.reason == reason


def test_all_other_real_pictures_decode(shared: Path) -> None:
    refused = {
        "pil-decompression_bomb.gif", "pil-bmp-b-reallybig.bmp", "pil-truncated_image.png", "pil-truncated_jpeg.jpg",
        "pil-broken.png", "ft-mif1.heic", "skimage-multipage_rgb.tif",
    }  # fmt: skip
    for path in sorted((shared / "images").rglob("*.*")):
        if path.is_file() and path.name not in refused:
            assert max(pixels(decode_image(path.read_bytes(), IMAGE).data).shape) <= 512, path.name
