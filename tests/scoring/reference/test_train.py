"""The reference's parts: config, tokenizer, batches, training, checkpoints on disk."""

import hashlib
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.places import ROOT
from support.text_projects import TINY, files, texts

from scoring.core.errors import ConfigError, DataError
from scoring.gradients.layers import scored_layers
from scoring.models import encoding
from scoring.models import load as models
from scoring.reference import train as reference
from scoring.reference.config import ReferenceConfig

CONFIG: dict[str, Any] = {"model": "train", "refresh_ratio": 0.1, "seed": 7, **TINY}
TEXTS = list(texts(30).values())


def configured(**changes: Any) -> ReferenceConfig:
    return ReferenceConfig(**{**CONFIG, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocabulary", 257), ("layers", 0), ("width", 18), ("heads", 0), ("context", 1), ("train_rows", 7),
        ("steps", 2), ("batch_rows", 0), ("learning_rate", 0.0), ("learning_rate", 1.0), ("muon_rate", 0.0),
        ("checkpoints", 2),
        ("refresh_ratio", 1.5), ("seed", -1),
    ],
)  # fmt: skip
def test_config_refuses(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} must .* not {value}"):
        configured(**{field: value})


@pytest.mark.parametrize(
    ("steps", "checkpoints", "found"),
    [(150, 4, [38, 75, 112, 150]), (3, 3, [1, 2, 3]), (10, 3, [3, 7, 10]), (7, 5, [1, 3, 4, 6, 7])],
)
def test_checkpoints_are_evenly_spaced(steps: int, checkpoints: int, found: list[int]) -> None:
    assert configured(steps=steps, checkpoints=checkpoints).checkpoint_steps == found


def test_every_sixteenth_text_is_held_out() -> None:
    train, held = reference.split([str(n) for n in range(34)])
    assert held == ["0", "16", "32"]
    assert sorted([*train, *held], key=int) == [str(n) for n in range(34)]
    assert reference.split(["a", "b"]) == (["b"], ["a"])


TOKENIZER = reference.train_tokenizer(TEXTS, 300)


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_tokens_hold_the_whole_text(text: str) -> None:
    ids = TOKENIZER.backend_tokenizer.encode(text).ids
    assert TOKENIZER.backend_tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_tokenizer_of_few_texts_is_small() -> None:
    assert len(reference.train_tokenizer(["aaa"], 4096)) < 300


def test_special_tokens_spelled_out_are_text() -> None:
    told = next(encoding.token_ids(TOKENIZER, ["the end<|eos|>"])).tolist()
    assert not {TOKENIZER.eos_token_id, TOKENIZER.pad_token_id} & set(told)
    assert TOKENIZER.decode(told) == "the end<|eos|>"
    assert len(TOKENIZER) == 300


def test_chunks_end_with_the_end_token_and_drop_a_lone_one() -> None:
    ids = TOKENIZER.backend_tokenizer.encode(TEXTS[0]).ids
    (pieces,) = reference.chunks(TOKENIZER, [TEXTS[0], ""], len(ids))
    assert pieces == [ids]  # the end token would stand alone
    (pieces,) = reference.chunks(TOKENIZER, [TEXTS[0]], len(ids) - 1)
    assert pieces == [ids[:-1], [ids[-1], TOKENIZER.eos_token_id]]


def test_an_epoch_takes_each_text_once_and_the_next_one_its_next_piece() -> None:
    chunks = [[[n, 0], [n, 1]] for n in range(4)] + [[[4, 0]]]
    found = list(itertools.chain(*reference.batches(chunks, configured(steps=5, batch_rows=2))))
    assert sorted(found[:5]) == [[n, 0] for n in range(5)]
    assert sorted(found[5:]) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 0]]
    assert [n for n, _ in found[:5]] != [n for n, _ in found[5:]]


def test_fewer_texts_than_a_batch() -> None:
    found = list(reference.batches([[[1, 2]]], configured(steps=3, batch_rows=4)))
    assert found == [[[1, 2]] * 4] * 3


def test_the_cut_of_a_text_holds_all_epochs() -> None:
    assert configured(steps=10, batch_rows=4, context=24).text_chars(40) == 24 * 16
    assert configured(steps=11, batch_rows=4, context=24).text_chars(40) == 2 * 24 * 16


def trained(folder: Path) -> list[float]:
    config = configured(steps=12)
    tokenizer = reference.train_tokenizer(TEXTS, config.vocabulary)
    model = reference.new_model(config, tokenizer)
    chunks = reference.chunks(tokenizer, TEXTS, config.context)
    before = reference.mean_loss(model, chunks)
    with reference.deterministic():
        losses = list(reference.train(model, chunks, config))
    reference.save_checkpoint(folder, model, tokenizer)
    assert reference.mean_loss(model, chunks) < before - 0.2
    return losses


def test_training_that_diverges_is_an_error() -> None:
    model = reference.new_model(configured(), TOKENIZER)
    with torch.no_grad():
        model.lm_head.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match=r"diverged: the loss is nan\n.*learning_rate: 0.01"):
        list(reference.train(model, reference.chunks(TOKENIZER, TEXTS, 24), configured()))


def test_training_twice_leaves_the_same_bytes(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    assert trained(tmp_path / "a") == trained(tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


def test_another_process_trains_the_same_tokenizer() -> None:
    code = "import sys; from scoring.reference import train as reference; from support.text_projects import texts\n"
    code += "print(reference.train_tokenizer(list(texts(30).values()), 300).backend_tokenizer.to_str())"
    out = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".:tests", "RAYON_NUM_THREADS": seed},
            cwd=ROOT,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert out[0] == out[1] == TOKENIZER.backend_tokenizer.to_str() + "\n"


def test_a_checkpoint_is_a_model_folder(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-00012"
    trained(folder)
    model, tokenizer = models.load_causal(str(folder)), models.load_tokenizer(str(folder))
    assert tokenizer.backend_tokenizer.to_str() == TOKENIZER.backend_tokenizer.to_str()
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)
    assert len(scored_layers(model, "all")) == 2 * 7 + 1
    assert [p.name for p in tmp_path.iterdir()] == [folder.name]


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-00001"
    folder.mkdir()
    (folder / "kept").write_text("x")  # a folder with content cannot be renamed over
    model = reference.new_model(configured(), TOKENIZER)
    with pytest.raises(DataError, match="cannot write"):
        reference.save_checkpoint(folder, model, TOKENIZER)
    assert files(tmp_path) == {"checkpoint-00001/kept": b"x"}


def test_the_seed_draws_the_weights() -> None:
    def digest(seed: int) -> str:
        model = reference.new_model(configured(seed=seed), TOKENIZER)
        return hashlib.md5(model.lm_head.weight.detach().numpy().tobytes()).hexdigest()

    assert digest(1) == digest(1) != digest(2)


def test_mean_loss_does_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = reference.new_model(configured(), TOKENIZER)
    chunks = reference.chunks(TOKENIZER, TEXTS, 24)
    whole = reference.mean_loss(model, chunks)
    monkeypatch.setattr(reference, "_EVALUATION_TOKENS", 1)
    assert reference.mean_loss(model, chunks) == pytest.approx(whole, rel=1e-5)


def test_curve() -> None:
    assert reference.curve([3.0, 2.0, 1.0]) == [[1, 3.0], [2, 2.0], [3, 1.0]]
    long = reference.curve([float(n) for n in range(101)])
    assert len(long) == 34
    assert (long[0], long[-1]) == ([3, 1.0], [101, 99.5])
    assert reference.curve([]) == []
