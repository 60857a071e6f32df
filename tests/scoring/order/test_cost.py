"""Token schemes and FLOPs against costs computed by hand."""

import numpy as np
import pytest

from scoring.order import cost

VIDEO = cost.VideoTokens(per_frame=256, temporal_merge=2)
TARGET = {"parameters": 1e9, "layers": 24, "width": 2048}


def image(scheme: str = "patch", patch: int = 14, merge: int = 2) -> cost.ImageTokens:
    return cost.ImageTokens(scheme=scheme, per_image=256, patch=patch, merge=merge)


def test_twenty_minutes_of_video_at_one_frame_a_second() -> None:
    assert cost.video_tokens(VIDEO, 20 * 60) == 153_600


@pytest.mark.parametrize(("frames", "tokens"), [(0, 0), (1, 128), (2, 256), (3, 384)])
def test_video(frames: int, tokens: int) -> None:
    assert cost.video_tokens(VIDEO, frames) == tokens


def test_a_begun_merge_of_frames_counts_whole() -> None:
    assert cost.video_tokens(cost.VideoTokens(per_frame=3, temporal_merge=2), 3) == 5


@pytest.mark.parametrize(
    ("config", "size", "tokens"),
    [
        (image("fixed"), (1, 1), 256),
        (image(), (28, 28), 1),
        (image(), (29, 28), 2),  # 3 × 2 patches, four a token
        (image(), (512, 384), 259),  # 37 × 28 = 1036 patches
        (image(merge=1), (512, 384), 1036),
        (image(patch=16, merge=1), (224, 224), 196),  # ViT-B/16
        (image(), (0, 0), 0),
    ],
)
def test_image(config: cost.ImageTokens, size: tuple[int, int], tokens: int) -> None:
    assert cost.image_tokens(config, *size) == tokens


@pytest.mark.parametrize(
    ("rate", "seconds", "tokens"),
    [(25.0, 4.0, 100), (25.0, 4.04, 101), (25.0, 0.0, 0), (25.0, 0.001, 1), (0.0, 9.0, 0)],
)
def test_audio(rate: float, seconds: float, tokens: int) -> None:
    assert cost.audio_tokens(cost.AudioTokens(per_second=rate), seconds) == tokens


def test_flops_of_a_billion_parameters() -> None:
    found = cost.flops(cost.Target(**TARGET, causal=False), np.array([0, 1000], np.int64))
    assert found.tolist() == [0.0, 6e12 + 12 * 24 * 2048 * 1e6]


def test_causal_kernels_do_half_of_the_attention() -> None:
    tokens = np.array([5000], np.int64)
    full, half = (cost.flops(cost.Target(**TARGET, causal=c), tokens)[0] for c in (False, True))
    assert full - half == half - 6e9 * 5000


def test_complexity_is_the_cost_over_the_median_and_zero_where_nothing_costs() -> None:
    assert cost.complexity(np.array([0.0, 2.0, 4.0]), 2.0).tolist() == [0.0, 1.0, 2.0]
    assert cost.complexity(np.array([0.0, 0.0]), None).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "build",
    [
        lambda: image(patch=0),
        lambda: cost.VideoTokens(per_frame=1, temporal_merge=0),
        lambda: cost.AudioTokens(per_second=float("nan")),
        lambda: cost.Target(parameters=0.0, layers=1, width=1, causal=False),
    ],
)
def test_impossible_values_are_refused(build: object) -> None:
    with pytest.raises(ValueError, match=r"at least|above"):
        build()  # type: ignore[operator]
