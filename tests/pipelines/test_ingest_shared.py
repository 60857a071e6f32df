"""Real files of every kind: each one is accounted for."""

from pathlib import Path

from support.ingesting import ask, metrics, project

from pipelines import ingest


def test_every_shared_file_is_accounted_for(shared: Path, tmp_path: Path) -> None:
    names = ["text_zh", "parquet", "web", "multimodal"]
    pages = {"extractor": "resiliparse"}
    sources = [{"name": n, "paths": [str(shared / n)], "html": pages} for n in names]
    ingest.run(project(tmp_path, sources, max_reject_ratio=1.0))
    counts = metrics(tmp_path)
    assert counts["files"] == sum(p.is_file() for n in names for p in (shared / n).rglob("*"))
    seen = set(ask(tmp_path, "samples", "DISTINCT uri")) | set(ask(tmp_path, "rejects", "DISTINCT uri"))
    assert len(seen) == counts["files"] - 1  # warcio-example-digest.warc holds requests and no document
    assert counts["by_source"]["text_zh"]["rejects"] == 0
    web = counts["by_source"]["web"]
    assert (web["inputs"], web["rows"]) == (87, 64)
    assert web["by_reason"] == {"unsupported_format": 23}


def test_shared_rows_with_mappings(shared: Path, tmp_path: Path) -> None:
    alpaca = "{instruction}\n{input}\n{output}"
    sources = [
        {"name": "alpaca", "paths": [str(shared / "labelled/alpaca_en.jsonl")], "columns": {"text": alpaca}},
        {"name": "zh", "paths": [str(shared / "labelled/alpaca_zh_demo.json")], "columns": {"text": alpaca}},
        {"name": "dpo", "paths": [str(shared / "labelled/preference_dpo_en.jsonl")],
         "columns": {"text": "{conversations}\n{chosen}"}},
        {"name": "talk", "paths": [str(shared / "multimodal/llama_factory/mllm_demo.json")],
         "columns": {"text": "messages"}},
        {"name": "bytes", "paths": [str(shared / "multimodal/data_juicer/*.parquet")],
         "columns": {"images": "image_bytes"}},
        {"name": "saved", "paths": [str(shared / "parquet")], "format": "huggingface",
         "kwargs": {"data_files": {"train": [str(shared / "parquet/dj-demo.parquet")]}}},
    ]  # fmt: skip
    ingest.run(project(tmp_path, sources))
    found = {s: (c["inputs"], c["rows"]) for s, c in metrics(tmp_path)["by_source"].items()}
    assert found == {
        "alpaca": (999, 999),
        "zh": (1000, 1000),
        "dpo": (140, 140),
        "talk": (6, 6),
        "bytes": (3, 3),
        "saved": (6, 6),
    }
    assert ask(tmp_path, "samples", "count(*) FILTER (source = 'bytes' AND modality = 'image')") == [(3,)]
