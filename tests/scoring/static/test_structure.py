"""SSIM against the reference implementation and a slow loop; learnability from noise to what is known beforehand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.ndimage import uniform_filter
from skimage.metrics import structural_similarity

from scoring.static.structure import FLAT, learnability, ssim

RNG = np.random.default_rng(11)
ROWS, COLUMNS = np.mgrid[0:40, 0:52].astype(float)
SCENE = 128 + 60 * np.sin(COLUMNS / 9) * np.cos(ROWS / 7) + 20 * (COLUMNS > 30)
NOISE = RNG.uniform(0, 255, SCENE.shape)


def slow_ssim(a: np.ndarray, b: np.ndarray) -> float:
    """One window after another, by the definition."""
    steps = np.arange(-5, 6)
    weights = np.exp(-(steps[:, None] ** 2 + steps[None, :] ** 2) / 4.5)
    weights /= weights.sum()
    c1, c2 = 2.55**2, 7.65**2
    found = []
    for y in range(a.shape[0] - 10):
        for x in range(a.shape[1] - 10):
            p, q = a[y : y + 11, x : x + 11], b[y : y + 11, x : x + 11]
            mp, mq = (weights * p).sum(), (weights * q).sum()
            vp, vq = (weights * (p - mp) ** 2).sum(), (weights * (q - mq) ** 2).sum()
            cov = (weights * (p - mp) * (q - mq)).sum()
            found.append((2 * mp * mq + c1) * (2 * cov + c2) / ((mp**2 + mq**2 + c1) * (vp + vq + c2)))
    return float(np.mean(found))


PAIRS = [
    (SCENE, SCENE),
    (SCENE, np.clip(SCENE + RNG.normal(0, 12, SCENE.shape), 0, 255)),
    (SCENE, NOISE),
    (SCENE, 255 - SCENE),
    (np.zeros((11, 11)), np.full((11, 11), 255.0)),
    (SCENE, np.roll(SCENE, 3, axis=1)),
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_ssim_is_that_of_the_definition(a: np.ndarray, b: np.ndarray) -> None:
    assert ssim(a, b) == pytest.approx(slow_ssim(a, b), abs=1e-10)
    assert ssim(a, b) == ssim(b, a)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_ssim_is_that_of_scikit_image(a: np.ndarray, b: np.ndarray) -> None:
    theirs = structural_similarity(a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255)
    assert ssim(a, b) == pytest.approx(theirs, abs=1e-10)


def test_ssim_falls_as_two_frames_part() -> None:
    close, far = (ssim(SCENE, np.roll(SCENE, k, axis=1)) for k in (1, 6))
    assert ssim(SCENE, SCENE) == pytest.approx(1)
    assert 1 > close > far > ssim(SCENE, NOISE)
    assert math.isnan(ssim(SCENE, SCENE[:30]))
    assert math.isnan(ssim(SCENE[:10], SCENE[:10]))


def test_learnability_orders_what_anyone_can_order() -> None:
    blurred = uniform_filter(NOISE, 3)
    grainy = SCENE + RNG.normal(0, 25, SCENE.shape)
    stripes = 255.0 * (COLUMNS % 2)
    assert learnability(NOISE) < 0.02
    assert learnability(NOISE) < learnability(grainy) < learnability(blurred) < learnability(SCENE) <= 1
    assert learnability(stripes) == pytest.approx(1, abs=1e-6)
    assert learnability(ROWS + 2 * COLUMNS) == pytest.approx(1, abs=1e-6)


def test_learnability_is_the_adjusted_fit_of_a_regression() -> None:
    from sklearn.linear_model import LinearRegression

    grey = SCENE + RNG.normal(0, 25, SCENE.shape)
    spots = [(y, x) for y in range(1, 39) for x in range(1, 51)]
    near = [[grey[y + j, x + i] for j in (-1, 0, 1) for i in (-1, 0, 1) if (j, i) != (0, 0)] for y, x in spots]
    fit = LinearRegression().fit(near, [grey[y, x] for y, x in spots]).score(near, [grey[y, x] for y, x in spots])
    n = len(spots)
    assert learnability(grey) == pytest.approx(1 - (1 - fit) * (n - 1) / (n - 9), abs=1e-9)


def test_light_and_contrast_do_not_count() -> None:
    grainy = SCENE + RNG.normal(0, 25, SCENE.shape)
    assert learnability(0.3 * grainy + 40) == pytest.approx(learnability(grainy), abs=1e-9)


@pytest.mark.parametrize("grey", [np.full((40, 40), 90.0), np.zeros((9, 9)), np.zeros((1, 1)), NOISE[:9, :9]])
def test_a_flat_picture_and_a_small_one_have_none(grey: np.ndarray) -> None:
    assert math.isnan(learnability(grey))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 24), st.integers(1, 24))))
@settings(deadline=None)
def test_any_picture_has_a_bounded_reading_or_none(pixels: np.ndarray) -> None:
    grey = pixels.astype(float)
    found = learnability(grey)
    assert math.isnan(found) or 0 <= found <= 1
    if min(grey.shape) >= 10 and grey[1:-1, 1:-1].var() > FLAT:
        assert not math.isnan(found)
    same = ssim(grey, grey)
    assert math.isnan(same) or same == pytest.approx(1)
