"""Saving into a folder that holds something else already: what would mix two checkpoints is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import zoo
from zoo.errors import ZooError
from zoo.loading import load_model
from zoo.models import bert
from zoo.models.roberta import RobertaConfig, RobertaModel

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def fill(tiny):
    return zoo.load(tiny("ForMaskedLM"))


@pytest.fixture
def encoder(tiny):
    """The folder of a sentence encoder."""
    folder = tiny()
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "cls"}')
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def test_a_task_over_a_sentence_encoder(fill, encoder):
    before = contents(encoder)
    with pytest.raises(ZooError, match=r"files of another save.*: 1_Pooling/config\.json, modules\.json; save into"):
        zoo.save(fill, encoder)
    assert contents(encoder) == before


@pytest.mark.parametrize(
    "name",
    [
        *("tokenizer.json", "merges.txt", "chat_template.jinja", "preprocessor_config.json", "generation_config.json"),
        *("pytorch_model.bin", "model.safetensors.index.json", "model-00002-of-00003.safetensors"),
    ],
)
def test_a_task_over_a_file_that_it_does_not_write(fill, tmp_path, name):
    (tmp_path / name).write_text("{}")
    (tmp_path / "notes.txt").write_text("a user's own")
    with pytest.raises(ZooError, match=f"beside the new ones: {name};"):
        zoo.save(fill, tmp_path)
    (tmp_path / name).unlink()
    assert zoo.load(zoo.save(fill, tmp_path)).name == "fill-mask"
    assert (tmp_path / "notes.txt").exists()


def test_a_task_over_its_like_and_over_itself(fill, encoder, tmp_path):
    for _ in range(2):
        zoo.save(fill, tmp_path / "fill")
        embed = zoo.load(zoo.save(zoo.load(encoder), tmp_path / "embed"))
    assert embed.encoder.pooling == ("cls",)
    (encoder / "generation_config.json").write_text("{}")  # it lies in the checkpoint's own folder
    zoo.save(zoo.load(encoder), encoder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin"])
def test_a_model_beside_other_weights(tmp_path, name):
    model = bert.BertModel.from_config(bert.BertConfig(vocab_size=9, **SIZES))
    (tmp_path / name).touch()
    with pytest.raises(ZooError, match=f"beside the new ones: {name};"):
        zoo.save(model, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_model_over_one_of_another_class(tiny, encoder):
    other = RobertaModel.from_config(RobertaConfig(vocab_size=9, **SIZES))
    for model in (other, load_model(tiny("ForMaskedLM"))):
        before = contents(encoder)
        with pytest.raises(ZooError, match=r"modules\.json, tokenizer_config\.json, vocab\.txt; save into"):
            zoo.save(model, encoder)
        assert contents(encoder) == before
    (encoder / "config.json").write_text("{")
    with pytest.raises(ZooError, match=r"modules\.json"):
        zoo.save(other, encoder)


def test_a_model_into_its_own_folder_or_one_with_a_tokenizer_alone(tiny, encoder, tmp_path):
    model = load_model(encoder)
    model.embeddings.word = model.embeddings.word * 2
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(encoder / name, tmp_path)
    for folder in (encoder, tmp_path):
        again = zoo.load(zoo.save(model, folder))
        np.testing.assert_array_equal(again.model.embeddings.word, model.embeddings.word)


def test_the_checkpoint_that_comes_with_zoo_stays(monkeypatch):
    llm = zoo.load("stories260k")
    monkeypatch.setattr(zoo.saving, "atomic_folder", lambda path: pytest.fail(f"would write {path}"))
    with pytest.raises(ZooError, match="package zoo itself"):
        zoo.save(llm, llm.checkpoint.folder)
