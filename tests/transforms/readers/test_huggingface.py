"""Data sets that `datasets` loads from this machine."""

import json
from pathlib import Path

import datasets
import pytest
from PIL import Image
from support.reading import read, source

from scoring.core.errors import ConfigError
from transforms.readers.base import Extent
from transforms.readers.columns import Columns
from transforms.readers.fields import Media, to_fields
from transforms.readers.huggingface import local, local_paths, read_huggingface

ROWS = [{"text": "a", "n": 1}, {"text": "b", "n": 2}]


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def test_a_saved_data_set_gives_class_labels_by_name(tmp_path: Path) -> None:
    labels = datasets.ClassLabel(names=["no", "yes"])
    found = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, None]}).cast_column("label", labels)
    found.save_to_disk(tmp_path / "one")
    expected = [
        (0, {"text": "a", "label": "yes"}),
        (1, {"text": "b", "label": "no"}),
        (2, {"text": "c", "label": None}),
    ]
    assert read(read_huggingface, tmp_path / "one") == expected
    datasets.DatasetDict(test=found).save_to_disk(tmp_path / "two")
    assert read(read_huggingface, tmp_path / "two", split="test") == expected


def test_labels_inside_lists_and_structs_have_names_and_minus_one_is_none(tmp_path: Path) -> None:
    tag = datasets.ClassLabel(names=["noun", "verb"])
    features = datasets.Features(
        {
            "text": datasets.Value("string"), "label": tag, "tags": datasets.List(tag), "deep": datasets.List([tag]),
            "nested": {"tag": tag, "n": datasets.Value("int64")},
            "parts": [{"tag": tag, "word": datasets.Value("string")}],
            "turned": datasets.Sequence({"tag": tag, "word": datasets.Value("string")}),
        }
    )  # fmt: skip
    row = {
        "text": "a", "label": -1, "tags": [0, -1, 1], "deep": [[1], []], "nested": {"tag": 1, "n": 1},
        "parts": [{"tag": 0, "word": "x"}], "turned": {"tag": [1, 0], "word": ["x", "y"]},
    }  # fmt: skip
    datasets.Dataset.from_list([row], features=features).save_to_disk(tmp_path / "one")
    assert read(read_huggingface, tmp_path / "one") == [
        (0, {
            "text": "a", "label": None, "tags": ["noun", None, "verb"], "deep": [["verb"], []],
            "nested": {"tag": "verb", "n": 1}, "parts": [{"tag": "noun", "word": "x"}],
            "turned": {"tag": ["verb", "noun"], "word": ["x", "y"]},
        })
    ]  # fmt: skip


def test_a_builder_with_files_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    keys = source(format="huggingface", kwargs={"data_files": {"train": ["rows.jsonl"]}})
    items = list(read_huggingface(Extent(tmp_path, Path("json"), keys, 1 << 20)))
    assert [i.fields for i in items] == ROWS  # type: ignore[union-attr]


def test_a_folder_of_pictures(tmp_path: Path) -> None:
    for name, color in (("cat", "red"), ("dog", "blue")):
        (tmp_path / "pets" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8), color).save(tmp_path / "pets" / name / "a.png")
    keys = source(format="huggingface")
    items = list(read_huggingface(Extent(tmp_path, tmp_path / "pets", keys, 1 << 20)))
    found = [to_fields(i, Columns.of(keys)) for i in items]  # type: ignore[arg-type]
    assert [f.label for f in found] == ["cat", "dog"]
    [medium] = found[0].media
    assert isinstance(medium, Media)
    assert medium.path is not None
    assert medium.path.endswith("cat/a.png")


def test_what_cannot_be_loaded_is_a_fault_of_params(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}')
    with pytest.raises(ConfigError, match="split nowhere"):
        read(read_huggingface, tmp_path, split="nowhere")
    with pytest.raises(ConfigError, match="nothing is downloaded"):
        list(read_huggingface(Extent(tmp_path, Path("some/name"), source(), 1 << 20)))


def test_rows_before_a_broken_one_stay(tmp_path: Path) -> None:
    good = "\n".join(json.dumps({"text": f"{k}"}) for k in range(2000))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.jsonl").write_text(good)
    (tmp_path / "d" / "b.jsonl").write_text("{ rubbish")
    found = read(read_huggingface, tmp_path / "d")
    assert found[-1] == (2000, "bad_value")
    assert len(found) == 2001


def test_paths_in_kwargs(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x")
    value = {"train": ["a.jsonl", "*.jsonl", "gone"], "n": 3, "url": "https://x.org/a"}
    assert local(tmp_path, value) == {
        "train": [str(tmp_path / "a.jsonl"), str(tmp_path / "*.jsonl"), "gone"], "n": 3, "url": "https://x.org/a",
    }  # fmt: skip
    assert list(local_paths(tmp_path, value)) == [tmp_path / "a.jsonl"] * 2
