"""Agreement: Krippendorff's own examples, an explicit oracle of his definition, and clusters worked by hand."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.core.errors import ConfigError
from scoring.quality import agreement
from scoring.quality.agreement import krippendorff_alpha
from scoring.quality.config import Level

# "Computing Krippendorff's Alpha-Reliability" (2011), sections A, B and C; a dot is a missing judgement.
BINARY = ("0100000010", "1110010000")
NOMINAL = ("aabbdcccedda", "babbbccceddd")
MISSING = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def items(observers: tuple[str, ...]) -> list[list[str]]:
    return [[label for label in unit if label != "."] for unit in zip(*observers, strict=True)]


def difference(level: Level, a: str, b: str, counts: Counter[str]) -> float:
    """The metric δ² of two labels that are digits."""
    if level == "nominal":
        return float(a != b)
    if level == "interval":
        return (float(a) - float(b)) ** 2
    between = sum(n for label, n in counts.items() if min(a, b) <= label <= max(a, b))
    return (between - (counts[a] + counts[b]) / 2) ** 2


def oracle(votes: list[list[str]], level: Level) -> float | None:
    """1 − observed / expected disagreement, pair by pair."""
    paired = [item for item in votes if len(item) > 1]
    values = [label for item in paired for label in item]
    n, counts = len(values), Counter(values)
    if len(counts) < 2:
        return None
    observed = sum(
        difference(level, a, b, counts) / (len(item) - 1) for item in paired for a, b in permutations(item, 2)
    )
    expected = sum(difference(level, a, b, counts) for a, b in permutations(values, 2)) / (n - 1)
    return 1 - observed / expected


@pytest.mark.parametrize(
    ("observers", "level", "alpha"),
    [
        (BINARY, "nominal", 0.095),
        (NOMINAL, "nominal", 0.692),
        (MISSING, "nominal", 0.743),
        (MISSING, "ordinal", 0.815),
        (MISSING, "interval", 0.849),
    ],
)
def test_the_examples_of_the_paper(observers: tuple[str, ...], level: Level, alpha: float) -> None:
    found = krippendorff_alpha(items(observers), level)
    assert found == pytest.approx(alpha, abs=5e-4)
    assert found == pytest.approx(oracle(items(observers), level), abs=1e-12)


@given(st.lists(st.lists(st.sampled_from("01234"), max_size=5), max_size=12), st.sampled_from(Level.__args__))
def test_alpha_is_what_the_definition_says(votes: list[list[str]], level: Level) -> None:
    found, wanted = krippendorff_alpha(votes, level), oracle(votes, level)
    assert (found is None) == (wanted is None)
    assert found == pytest.approx(wanted, abs=1e-9)


def test_alpha_of_nothing_to_compare_is_none() -> None:
    assert krippendorff_alpha([], "nominal") is None
    assert krippendorff_alpha([["a"], ["b"], []], "nominal") is None
    assert krippendorff_alpha([["a", "a"], ["a", "a"]], "nominal") is None, "no variation: chance has no measure"
    assert krippendorff_alpha([["a", "a"], ["b", "b"]], "nominal") == 1


def test_a_scale_gives_words_an_order() -> None:
    words = dict(zip("12345", ("awful", "bad", "fair", "good", "great"), strict=True))
    votes = [[words[v] for v in item] for item in items(MISSING)]
    assert krippendorff_alpha(votes, "ordinal", list(words.values())) == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(votes, "nominal") == pytest.approx(0.743, abs=5e-4)
    with pytest.raises(ConfigError, match=r"awful.* not all in the scale good, bad"):
        krippendorff_alpha(votes, "ordinal", ["good", "bad"])
    with pytest.raises(ConfigError, match="not all numbers"):
        krippendorff_alpha(votes, "interval")
    with pytest.raises(ConfigError, match="not all numbers"):
        krippendorff_alpha([["1", "nan"]], "interval")


def test_alpha_of_many_fine_grained_labels_takes_every_second_item(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    votes = [[str(v), str(v + int(rng.integers(3)))] for v in rng.integers(100, size=2000)]
    whole = krippendorff_alpha(votes, "interval")
    monkeypatch.setattr(agreement, "_MAX_CELLS", 5_000_000)
    assert krippendorff_alpha(votes, "interval") == krippendorff_alpha(votes[::8], "interval") != whole
    assert krippendorff_alpha(votes, "interval") == pytest.approx(whole, abs=0.01)


@pytest.mark.parametrize(
    ("votes", "most", "bits"),
    [
        ([], None, 0.0),
        (["a"], "a", 0.0),
        (["a", "b"], None, 1.0),
        (["a", "a", "b"], "a", 0.918296),
        (["a", "b", "c", "d"], None, 2.0),
        (["a", "a", "b", "b", "c"], None, 1.521928),
        ([True, False, True], True, 0.918296),
    ],
)
def test_majority_and_entropy(votes: list[object], most: object, bits: float) -> None:
    assert agreement.majority(votes) is most
    assert agreement.entropy(votes) == pytest.approx(bits, abs=1e-6)


# Four rows about (0, 0), three of one label; two about (10, 10), one each.
POINTS = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [10, 12], [10, 8]], np.float32)
LABELS = np.array([1, 1, 1, 0, 1, 0])


def test_entropy_of_clusters_is_weighed_by_their_size() -> None:
    found = agreement.cluster_entropy(POINTS, LABELS, 2, seed=0)
    first, second = found.cluster[0], found.cluster[4]
    assert found.cluster.tolist() == [first] * 4 + [second] * 2
    assert found.entropy[[first, second]] == pytest.approx([0.811278, 1.0], abs=1e-6)
    assert found.mean == pytest.approx((4 * 0.811278 + 2) / 6, abs=1e-6)
    assert found.distance == pytest.approx([1, 1, 1, 1, 2, 2])


def test_rows_without_a_label_are_clustered_but_not_counted() -> None:
    labels = np.array([1, 1, -1, -1, -1, -1])
    found = agreement.cluster_entropy(POINTS, labels, 2, seed=0)
    assert found.entropy.tolist() == [0, 0]
    assert found.mean == 0
    assert math.isnan(agreement.cluster_entropy(POINTS, np.full(6, -1), 2, seed=0).mean)


def test_the_same_seed_gives_the_same_clusters() -> None:
    points = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    labels = np.arange(300) % 2
    runs = [agreement.cluster_entropy(points, labels, 5, seed=3) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].cluster, runs[1].cluster)
    assert runs[0].entropy.tolist() == runs[1].entropy.tolist()
    assert runs[0].mean == runs[1].mean > 0.9, "labels that have nothing to do with the place are mixed everywhere"


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((1, 3)), np.zeros((5, 3)), np.eye(3)])
def test_few_or_equal_rows(points: np.ndarray) -> None:
    labels = np.arange(len(points)) % 2
    found = agreement.cluster_entropy(points, labels, 4, seed=0)
    assert len(found.entropy) == len(np.unique(points, axis=0))
    far = agreement.outliers(points, labels, found, 10)
    assert far.distance.tolist() == [1.0] * len(points)
    assert np.isnan(far.neighbours).all() == (len(points) < 2)


def test_a_row_far_from_its_centre_or_among_other_labels_is_an_outlier() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(50, 4)), rng.normal(size=(50, 4)) + 20, [[6, 6, 6, 6]]])
    labels = np.repeat([0, 1], [50, 51])
    labels[7] = 1
    found = agreement.cluster_entropy(points, labels, 2, seed=0)
    far = agreement.outliers(points, labels, found, 5)
    assert int(far.distance.argmax()) == 100
    assert far.distance[100] > 4
    assert far.neighbours[7] == 0
    assert np.delete(far.neighbours, [7, 100]).min() >= 0.8


def test_among_equal_rows_one_that_differs_is_as_far_as_can_be() -> None:
    points = np.array([[0.0, 0], [0, 0], [0, 0], [0, 0], [1, 0]])
    found = agreement.Clusters(np.zeros(5, np.int32), np.zeros(1), 0.0, np.linalg.norm(points, axis=1))
    assert agreement.outliers(points, np.ones(5), found, 2).distance.tolist() == [1, 1, 1, 1, agreement.OUTLIER_CAP]


def test_neighbours_without_a_label_do_not_count() -> None:
    points = np.array([[0.0], [1.0], [2.5], [4.5]])
    labels = np.array([1, -1, 1, 0])
    found = agreement.cluster_entropy(points, labels, 1, seed=0)
    share = agreement.outliers(points, labels, found, 2).neighbours
    assert share[0] == 1
    assert np.isnan(share[1])
    assert agreement.outliers(points, np.array([1, -1, -1, 0]), found, 1).neighbours[0] != 1
