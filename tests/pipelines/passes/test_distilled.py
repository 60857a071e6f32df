"""The distilled scorer in the stage `lqs`: rows outside the proxy sample are predicted, all others left alone."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from support import scored_corpus

from pipelines import lqs
from pipelines.core.project import Project
from scoring.core.errors import ConfigError
from scoring.lqs.distill import Distilled
from scoring.static.dimensions import DIMENSIONS
from transforms.core import parts, schemas
from transforms.gradients.notes import NOT_SAMPLED
from transforms.lqs import distilled

DISTILL = {"min_spearman": 0.3, "min_rows": 40, "max_rows": 1000, "seed": 7}
FULL = range(144)
OUTSIDE = [n for n in FULL if n % 12 in (0, 8)]
MEASURED = [n for n in FULL if n % 12 in (1, 2, 5, 7)]
UNJUDGED = 8  # has no static score
FILES = ("distilled.safetensors", "distilled.json")

Row = dict[str, Any]


def signal(number: int) -> float:
    """Returns what decides the LQS of sample `number`."""
    return float(np.random.default_rng(number).normal())


def row(number: int) -> Row:
    """Returns sample `number`, all of whose features hint at its LQS."""
    rng, hint = np.random.default_rng(5000 + number), signal(number)
    found = scored_corpus.with_static(scored_corpus.row(number), number)
    if not found["gradients"].get("loss"):
        return found
    dots = [hint + 0.1 * rng.normal(), hint, None]
    found["gradients"] |= {"costate_dot": dots, "grad_norm": rng.uniform(0.9, 1.1, 3).tolist()}
    vector = np.array([hint, 1.0, *rng.normal(size=6) / 10])
    found["quality"] = {**found["quality"], "embedding": np.round(vector * 127 / np.abs(vector).max()).tolist()}
    found["static"] |= {d: float(rng.uniform()) for d in DIMENSIONS} | {"predictability": hint}
    return found


def left_out(found: Row) -> Row:
    """Returns a row as the gradients stage writes it outside the proxy sample."""
    gradients = {"gradient_note": NOT_SAMPLED, "loss": [None, None, 3.5], "order_gain": 0.5}
    return {**found, "gradients": gradients, "static": {} if found is ROWS[UNJUDGED] else found["static"]}


ROWS = [row(n) for n in FULL]
SAMPLED = [left_out(r) if n in OUTSIDE else r for n, r in enumerate(ROWS)]


def changed(**values: Mapping[str, Any]) -> list[Row]:
    """Returns the rows with other values of one folder."""
    return [{**r, **{f: {**r[f], **v} if r[f] else r[f] for f, v in values.items()}} for r in SAMPLED]


def scored(root: Path, given: Sequence[Row], size: int = 50, **values: Any) -> Project:
    section = {"norm_discount": 0.5, "alpha": 0.5, **values, "distill": {**DISTILL, **values.get("distill", {})}}
    project = scored_corpus.write(root, given, size, lqs=section)
    lqs.run(project)
    return project


def rows(project: Project) -> list[Row]:
    """Returns what the stage says of each row, in the order of the ids."""
    reads = {"lqs": schemas.LQS.names[1:]}
    found = [
        r for b in parts.iter_columns(project.data, parts.names(project.folder("lqs")), reads) for r in b.to_pylist()
    ]
    return [{k.split(".")[-1]: v for k, v in r.items()} for r in sorted(found, key=lambda r: str(r["sample_id"]))]


def metrics(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.metrics("lqs").read_text()))


def stored(project: Project) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in project.folder("lqs").iterdir()}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return scored(tmp_path_factory.mktemp("distilled"), SAMPLED)


def test_rows_outside_the_sample_are_predicted(done: Project) -> None:
    found = rows(done)
    guesses = [found[n]["lqs"] for n in OUTSIDE]
    assert spearmanr(guesses, [signal(n) for n in OUTSIDE]).statistic > 0.8
    for n in OUTSIDE:
        note = "distilled only: no static score" if n == UNJUDGED else "distilled"
        assert (found[n]["score_note"], found[n]["high_value"]) == (note, False)
        assert found[n]["learnability"] is found[n]["gradient_quality"] is None
        assert found[n]["band"] is not None
    assert {n for n, r in enumerate(found) if str(r["score_note"]).startswith("distilled")} == set(OUTSIDE)


def test_a_prediction_is_mixed_as_a_measured_score_of_mean_norm_would_be(done: Project) -> None:
    found = rows(done)
    measured = [found[n]["lqs"] for n in MEASURED]
    for n in OUTSIDE:
        z = float(np.clip((found[n]["lqs"] - np.mean(measured)) / np.std(measured), -3, 3)) / 1.25**0.5
        assert found[n]["lqs_z"] == pytest.approx(z, rel=1e-9)
    assert found[UNJUDGED]["score"] == found[UNJUDGED]["lqs_z"]


def test_rows_with_gradients_are_scored_as_if_there_were_no_others(tmp_path: Path, done: Project) -> None:
    lost = [
        {**r, "gradients": {"gradient_note": "infinite gradient"}} if n in OUTSIDE else r for n, r in enumerate(SAMPLED)
    ]
    alone, found = rows(scored(tmp_path, lost)), rows(done)
    names = [n for n in schemas.LQS.names[1:] if n != "band"]
    for n in set(FULL) - set(OUTSIDE):
        assert [found[n][c] for c in names] == [alone[n][c] for c in names]
    assert [alone[n]["lqs"] for n in OUTSIDE] == [None] * len(OUTSIDE)


def test_metrics_tell_how_well_it_predicts(done: Project) -> None:
    found = metrics(done)
    assert (found["with_gradients"], found["rows_distilled"]) == (len(MEASURED), len(OUTSIDE))
    assert found["static_only"] == sum(n % 12 in (6, 9, 10, 11) for n in FULL)
    card = found["distilled"]
    assert (card["rows"], card["features"]) == (len(MEASURED), 8 + 13)
    assert card["spearman_heldout"] > 0.8
    both = [(ROWS[n]["static"]["static_score"], rows(done)[n]["lqs"]) for n in MEASURED]
    assert found["spearman_static_lqs"] == pytest.approx(spearmanr(*zip(*both, strict=True)).statistic)


@pytest.mark.parametrize("size", [30, 144])
def test_part_size_and_order_change_nothing(tmp_path: Path, done: Project, size: int) -> None:
    other = scored(tmp_path, SAMPLED[::-1], size)
    assert stored(other)[FILES[0]][0] == stored(done)[FILES[0]][0]
    for a, b in zip(rows(other), rows(done), strict=True):
        assert [a[c] for c in ("band", "high_value", "score_note")] == [
            b[c] for c in ("band", "high_value", "score_note")
        ]
        for column in ("lqs", "lqs_z", "score"):
            assert a[column] == (None if b[column] is None else pytest.approx(b[column], abs=1e-6))


def test_a_second_run_computes_nothing_and_a_forced_one_the_same_bytes(done: Project) -> None:
    before = stored(done)
    assert set(FILES) < set(before)
    lqs.run(done)
    assert stored(done) == before
    lqs.run(replace(done, force=True))
    assert {name: content for name, (content, _) in stored(done).items()} == {n: c for n, (c, _) in before.items()}


@pytest.mark.parametrize(("name", "damage"), [(FILES[0], b"x"), (FILES[0], None), (FILES[1], b"{"), (FILES[1], None)])
def test_a_damaged_scorer_is_fitted_anew(tmp_path: Path, done: Project, name: str, damage: bytes | None) -> None:
    shutil.copytree(done.root, tmp_path, dirs_exist_ok=True)
    project = replace(done, root=tmp_path)
    path = project.folder("lqs") / name
    whole = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(whole[:-1] + damage)
    lqs.run(project)
    assert path.read_bytes() == whole


def test_without_rows_outside_the_sample_it_is_gone(tmp_path: Path, done: Project) -> None:
    shutil.copytree(done.root, tmp_path / "a", dirs_exist_ok=True)
    later, fresh = scored(tmp_path / "a", ROWS), scored(tmp_path / "b", ROWS)
    assert {n: c for n, (c, _) in stored(later).items()} == {n: c for n, (c, _) in stored(fresh).items()}
    assert not set(FILES) & set(stored(later))
    assert metrics(later)["rows_distilled"] == 0
    assert "distilled" not in metrics(later)


def test_another_formula_is_distilled_anew(tmp_path: Path, done: Project) -> None:
    project = scored(tmp_path, SAMPLED, formula="weighted", distill={"min_spearman": -1.0})
    assert stored(project)[FILES[0]][0] != stored(done)[FILES[0]][0]
    values = {rows(project)[n]["lqs"] for n in OUTSIDE}
    assert all(0 < v < 2 for v in values)


def test_scores_that_cannot_be_predicted_fail_the_stage(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"(?s)predicted scores is too low: 0\.\d+ over 48 rows.*min_spearman: 1\.0.*gradients\.proxy_ratio",
    ):
        scored(tmp_path, SAMPLED, distill={"min_spearman": 1.0})
    assert not (tmp_path / "data/lqs/distilled.json").exists()


def test_too_few_rows_with_gradients_fail_the_stage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)48 rows have gradients.*min_rows: 49.*raise gradients\.proxy_ratio"):
        scored(tmp_path / "few", SAMPLED, distill={"min_rows": 49})
    with pytest.raises(ConfigError, match="0 rows have gradients"):
        scored(tmp_path / "none", [SAMPLED[n] for n in OUTSIDE])


def test_no_more_rows_are_fitted_than_asked_for(tmp_path: Path) -> None:
    project = scored(tmp_path, SAMPLED, distill={"min_rows": 20, "max_rows": 36})
    assert 20 <= metrics(project)["distilled"]["rows"] <= 36
    assert metrics(project)["rows_distilled"] == len(OUTSIDE)


def test_without_embeddings_the_static_dimensions_predict(tmp_path: Path) -> None:
    project = scored(tmp_path, changed(quality={"embedding": None}))
    assert metrics(project)["distilled"]["features"] == 13
    found = rows(project)
    known = [n for n in OUTSIDE if n != UNJUDGED]
    assert spearmanr([found[n]["lqs"] for n in known], [signal(n) for n in known]).statistic > 0.6


def test_a_row_without_any_feature_is_expected_near_the_middle(tmp_path: Path, done: Project) -> None:
    bare = {**SAMPLED[0], "static": {}, "tokens": {}, "quality": scored_corpus.KEPT}
    found = rows(scored(tmp_path, [bare, *SAMPLED[1:]]))
    low, high = np.quantile([found[n]["lqs"] for n in MEASURED], [0.2, 0.8])
    assert low < found[0]["lqs"] < high


@pytest.mark.parametrize("given", [[], [SAMPLED[3]], [SAMPLED[9]]])
def test_no_row_that_needs_it(tmp_path: Path, given: list[Row]) -> None:
    project = scored(tmp_path, given)
    assert metrics(project)["rows_distilled"] == 0
    assert not set(FILES) & set(stored(project))


def test_batches_of_no_rows_and_of_dropped_ones(done: Project) -> None:
    scorer = Distilled.from_bytes((done.folder("lqs") / FILES[0]).read_bytes())
    batch = parts.read_columns(done.data, parts.names(done.folder("samples"))[0], distilled.with_features(lqs.READS))
    assert distilled.predicted(batch.slice(0, 0), scorer).shape == (0,)
    assert distilled.embedding_width(batch.slice(0, 0)) == 0
    assert distilled.embedding_width(batch) == 8
    assert np.flatnonzero(distilled.outside(batch)).tolist() == [n for n in OUTSIDE if n < 50]
    np.testing.assert_array_equal(np.isfinite(distilled.predicted(batch, scorer)), distilled.outside(batch))
    assert np.isnan(distilled.features(batch, 8)[3]).all()
