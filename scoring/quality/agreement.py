"""Agreement of annotations: with each other, and with those of nearby rows.

Alpha: K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), by the library `krippendorff`.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from scoring.core.errors import ConfigError
from scoring.quality.config import Level

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Label = TypeVar("Label", bound=Hashable)

OUTLIER_CAP = 10.0  # of a distance over the median one, which may be 0

_MAX_CELLS = 10_000_000  # of the library's items × labels × labels array: three such, 240 MB
_STARTS = 4  # of k-means


def krippendorff_alpha(votes: Sequence[Sequence[str]], level: Level, scale: Sequence[str] = ()) -> float | None:
    """Returns α of the labels that each item got: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Items may have any number of labels. `scale` names the labels of an ordinal level from lowest to highest; without
    it they are numbers. None where no item has two labels, or where all these are one and the same: chance has no
    measure then. Of very many items times many labels, every second (fourth, …) item counts.

    Raises:
      ConfigError: a label is no number, or not on the scale.
    """
    import krippendorff

    values = [_values(item, level, scale) for item in votes if len(item) > 1]
    domain = _domain(values)
    while len(values) * len(domain) ** 2 > _MAX_CELLS:
        values = values[::2]
        domain = _domain(values)
    if len(domain) < 2:
        return None
    counts = np.zeros((len(values), len(domain)), np.int64)
    place = {value: k for k, value in enumerate(domain)}
    for row, item in enumerate(values):
        for value, n in Counter(item).items():
            counts[row, place[value]] = n
    numbers = np.arange(len(domain)) if level == "nominal" else np.array(domain, np.float64)
    return float(krippendorff.alpha(value_counts=counts, value_domain=numbers, level_of_measurement=level))


def _domain(values: Sequence[Sequence[str | float]]) -> list[str | float]:
    return sorted({value for item in values for value in item})


def _values(item: Sequence[str], level: Level, scale: Sequence[str]) -> list[str | float]:
    """Returns labels as what is compared: themselves, their place on the scale, or the numbers that they are."""
    if level == "nominal":
        return list(item)
    try:
        values = [float(scale.index(label) if scale else label) for label in item]
        if not all(map(math.isfinite, values)):
            raise ValueError
    except ValueError as error:
        kind = f"in the scale {', '.join(scale)}" if scale else "numbers"
        raise ConfigError(
            f"labels {', '.join(item)} are not all {kind}",
            where=f"Krippendorff's alpha at level {level}",
            remedy="set `level` to nominal, or list the labels from lowest to highest in `scale` (level ordinal)",
        ) from error
    return list(values)


def majority(votes: Sequence[Label]) -> Label | None:
    """Returns the most frequent label; None on a tie, or of no votes."""
    first = Counter(votes).most_common(2)
    return first[0][0] if first and (len(first) == 1 or first[0][1] > first[1][1]) else None


def entropy(votes: Sequence[Hashable]) -> float:
    """Returns the entropy of the labels in bits: 0 where all are the same, 1 where two split them evenly."""
    counts = Counter(votes).values()
    total = sum(counts)
    return abs(sum(n / total * math.log2(n / total) for n in counts))


class Clusters(NamedTuple):
    """Clusters of n rows, and how mixed the labels are within each."""

    cluster: Ints  # (n,) of each row
    entropy: Doubles  # (k,) bits, of the labels in each cluster; 0 where none has one
    mean: float  # of the entropies, each weighing as many rows as have a label; NaN where none has one
    distance: Doubles  # (n,) of each row to the centre of its cluster


def cluster_entropy(
    embeddings: npt.NDArray[np.floating], labels: npt.NDArray[np.integer], clusters: int, seed: int
) -> Clusters:
    """Returns k-means clusters of (n, d) `embeddings` and the entropy of the integer `labels` (n,) in each.

    A negative label is none: such a row is clustered, but not counted. No more clusters than distinct rows. The
    same rows in the same order give the same clusters, whatever the number of threads.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    points = embeddings.astype(np.float64)
    if not len(points):
        return Clusters(np.zeros(0, np.int32), np.zeros(0), math.nan, np.zeros(0))
    count = min(clusters, len(np.unique(points, axis=0)))
    with threadpool_limits(1):
        model = KMeans(count, n_init=_STARTS, random_state=seed).fit(points)
    own = model.labels_.astype(np.int32)
    distance = np.linalg.norm(points - model.cluster_centers_[own], axis=1)
    inside = [labels[(own == k) & (labels >= 0)] for k in range(count)]
    found = np.array([entropy(group.tolist()) for group in inside])
    sizes = np.array([len(group) for group in inside])
    mean = float(found @ sizes / sizes.sum()) if sizes.sum() else math.nan
    return Clusters(own, found, mean, distance)


class Outliers(NamedTuple):
    """How far each of n rows is from what is typical where it lies."""

    distance: Doubles  # (n,) to the cluster's centre, over the median of the cluster's rows; at most OUTLIER_CAP
    neighbours: Doubles  # (n,) share of the nearest labelled rows with the row's own label; NaN where unknown


def outliers(
    embeddings: npt.NDArray[np.floating], labels: npt.NDArray[np.integer], clusters: Clusters, neighbours: int
) -> Outliers:
    """Returns how unusual each of (n, d) `embeddings` is in its cluster and among its `neighbours` nearest rows.

    Neighbours with a negative label are left out of the share; a row with one has no share itself.
    """
    medians = np.zeros(len(clusters.entropy))
    for k in range(len(medians)):
        medians[k] = np.median(clusters.distance[clusters.cluster == k])
    median = medians[clusters.cluster]
    far = np.where(clusters.distance > 0, OUTLIER_CAP, 1.0)  # where the median is 0, and most rows are the same
    np.divide(clusters.distance, median, out=far, where=median > 0)
    return Outliers(np.minimum(far, OUTLIER_CAP), _same(embeddings, labels, neighbours))


def _same(embeddings: npt.NDArray[np.floating], labels: npt.NDArray[np.integer], neighbours: int) -> Doubles:
    """Returns (n,) the share of each row's nearest neighbours that have its label."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    near = min(neighbours, len(labels) - 1)
    if near < 1:
        return np.full(len(labels), np.nan)
    with threadpool_limits(1):
        model = NearestNeighbors(n_neighbors=near, algorithm="brute").fit(embeddings.astype(np.float64))
        found = labels[model.kneighbors(return_distance=False)]
    counted = (found >= 0).sum(axis=1)
    share = (found == labels[:, None]).sum(axis=1) / np.maximum(counted, 1)
    return np.where((labels >= 0) & (counted > 0), share, np.nan)
