"""Readings of real pictures, frames and sounds, low against high."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scoring.static.pictures import Pixels, breadth, correlation, entropy, picture_readings, video_readings
from scoring.static.sound import sound_readings

RATE = 16_000
RNG = np.random.default_rng(7)
ROWS, COLUMNS = np.mgrid[0:64, 0:96]


def rgb(grey: np.ndarray) -> Pixels:
    return np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


FLAT = rgb(np.full((64, 96), 90))
NOISE = RNG.integers(0, 256, (64, 96, 3)).astype(np.uint8)
STRIPES = rgb(255 * (COLUMNS // 8 % 2))
FAINT = rgb(120 + 10 * (COLUMNS // 8 % 2))
SCENE = np.stack(
    [2 * COLUMNS, 3 * ROWS, 128 + 60 * np.sin(COLUMNS / 9) * np.cos(ROWS / 7)], axis=2
).astype(np.uint8)  # fmt: skip
RINGS = rgb(127 + 120 * np.sin(np.hypot(ROWS - 32, COLUMNS - 48) / 2))
PATCHED = np.concatenate([np.full((64, 48, 3), (200, 20, 20)), np.full((64, 48, 3), (20, 20, 200))], 1).astype(np.uint8)
BLURRED = rgb(sum(np.roll(STRIPES[..., 0].astype(float), k, axis=1) for k in range(-6, 7)) / 13)


@pytest.mark.parametrize(
    ("dimension", "low", "high"),
    [
        ("lexical_diversity", STRIPES, SCENE),
        ("syntactic_variety", STRIPES, RINGS),
        ("reading_difficulty", FAINT, STRIPES),
        ("knowledge_density", FAINT, RINGS),
        ("semantic_breadth", STRIPES, PATCHED),
        ("coherence", NOISE, SCENE),
        ("cleanliness", BLURRED, STRIPES),
        ("visual_learnability", NOISE, SCENE),
    ],
)
def test_a_dimension_orders_what_anyone_can_order(dimension: str, low: Pixels, high: Pixels) -> None:
    a, b = (picture_readings(p, bytes_per_pixel=1.0)[dimension] for p in (low, high))
    assert a < b


def test_a_flat_picture_has_nothing_in_it() -> None:
    found = picture_readings(FLAT, bytes_per_pixel=0.01)
    assert math.isnan(found.pop("coherence"))
    assert math.isnan(found.pop("visual_learnability"))
    assert found.pop("compression") == 0.01
    assert found == dict.fromkeys(found, 0.0)


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))))
@settings(deadline=None)
def test_any_picture_has_finite_or_no_readings(pixels: Pixels) -> None:
    found = picture_readings(pixels, bytes_per_pixel=2.0)
    assert not any(math.isinf(v) for v in found.values())
    assert 0 <= found["lexical_diversity"] <= 9
    assert 0 <= found["syntactic_variety"] <= 4
    assert math.isnan(found["coherence"]) or -1 - 1e-9 <= found["coherence"] <= 1 + 1e-9


def test_motion_orders_videos() -> None:
    still = [SCENE] * 5
    moving = [np.roll(SCENE, 3 * k, axis=1) for k in range(5)]
    cuts = [RNG.integers(0, 256, SCENE.shape).astype(np.uint8) for _ in range(5)]
    read = [video_readings(v, bytes_per_pixel=[1.0] * 5) for v in (still, moving, cuts)]
    assert read[0]["coherence"] > read[1]["coherence"] > read[2]["coherence"]
    assert read[0]["frame_ssim"] == pytest.approx(1)
    assert read[0]["frame_ssim"] > read[1]["frame_ssim"] > read[2]["frame_ssim"]
    assert [r["originality"] for r in read] == [0.0, 1.0, 1.0]
    assert read[0]["semantic_breadth"] == pytest.approx(0, abs=1e-12)
    assert video_readings([SCENE, RINGS], bytes_per_pixel=[1.0, 2.0])["semantic_breadth"] > 0.1


def test_one_frame_no_frame_and_frames_of_other_sizes() -> None:
    one = video_readings([SCENE], bytes_per_pixel=[0.5])
    assert [d for d, v in one.items() if math.isnan(v)] == [
        "semantic_breadth",
        "coherence",
        "originality",
        "frame_ssim",
    ]
    assert all(math.isnan(v) for v in video_readings([], bytes_per_pixel=[]).values())
    assert math.isnan(video_readings([SCENE, SCENE[:30]], bytes_per_pixel=[1.0, 1.0])["coherence"])


def tone(seconds: float, hertz: float = 440.0, loud: float = 0.3) -> np.ndarray:
    return (32767 * loud * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)).astype(np.int16)


SILENCE = np.zeros(3 * RATE, np.int16)
HISS = (3000 * RNG.standard_normal(3 * RATE)).astype(np.int16)
SCALE = np.concatenate(
    [tone(0.5, f, v) for f, v in ((220, 0.05), (440, 0.5), (660, 0.1), (880, 0.4), (1320, 0.02), (1760, 0.6))]
)
BEEPS = np.concatenate([tone(0.2) if k % 2 else SILENCE[:3200] for k in range(15)])
CLIPPED = np.sign(tone(3.0)).astype(np.int16) * np.int16(32767)


@pytest.mark.parametrize(
    ("dimension", "low", "high"),
    [
        ("lexical_diversity", tone(3.0), HISS),
        ("syntactic_variety", tone(3.0), SCALE),
        ("reading_difficulty", HISS, BEEPS),
        ("compression", SILENCE, HISS),
        ("knowledge_density", tone(3.0), BEEPS),
        ("semantic_breadth", tone(3.0), SCALE),
        ("coherence", SCALE, tone(3.0)),
        ("cleanliness", BEEPS, HISS),
        ("cleanliness", CLIPPED, tone(3.0)),
    ],
)
def test_a_sound_dimension_orders_what_anyone_can_order(dimension: str, low: np.ndarray, high: np.ndarray) -> None:
    assert sound_readings(low, rate_hz=RATE)[dimension] < sound_readings(high, rate_hz=RATE)[dimension]


def test_silence_and_no_sound() -> None:
    silent = sound_readings(SILENCE, rate_hz=RATE)
    assert (silent["cleanliness"], silent["lexical_diversity"], silent["knowledge_density"]) == (0.0, 0.0, 0.0)
    assert sound_readings(SILENCE[:100], rate_hz=RATE) == {}
    assert sound_readings(SILENCE[:0], rate_hz=RATE) == {}
    assert math.isnan(silent["coherence"])
    assert math.isnan(sound_readings(HISS[:RATE], rate_hz=RATE)["coherence"])


def test_only_the_first_half_minute_counts() -> None:
    long = np.concatenate([np.tile(HISS, 10), SILENCE])
    assert sound_readings(long, rate_hz=RATE) == sound_readings(long[: 30 * RATE], rate_hz=RATE)


def test_helpers_on_degenerate_input() -> None:
    assert entropy(np.zeros(4)) == 0.0
    assert entropy(np.array([1, 1, 1, 1])) == 2.0
    assert math.isnan(correlation(np.ones(5), np.arange(5.0)))
    assert correlation(np.arange(5.0), -np.arange(5.0)) == pytest.approx(-1)
    assert math.isnan(breadth([]))
