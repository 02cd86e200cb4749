"""Hub layouts: legacy names, prefixes, tied tensors, strays; and what is said when a checkpoint does not fit."""

from __future__ import annotations

import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import zoo
from zoo import ops
from zoo.errors import CheckpointError, MissingWeightError, UnsupportedError, UnusedWeightError, WeightShapeError
from zoo.loading import load_model
from zoo.models.bert import BertConfig, BertForMaskedLM, BertModel
from zoo.models.roberta import RobertaConfig, RobertaForMaskedLM, RobertaForSequenceClassification
from zoo.nn import count_parameters

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 20,
}
WORDS = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"


@pytest.fixture
def ids(rng):
    return rng.integers(5, 50, (2, 9))


def saved(cls, config, folder):
    """A random model in `folder`, and its tensors."""
    model = cls.from_config(config)
    zoo.save(model, folder)
    return model, load_file(folder / "model.safetensors")


@pytest.fixture
def masked_lm(tmp_path):
    return saved(BertForMaskedLM, BertConfig.from_dict(SMALL), tmp_path)


def rewrite(folder, tensors):
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / "model.safetensors")


def test_gamma_and_beta(masked_lm, tmp_path, ids):
    model, tensors = masked_lm
    legacy = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in tensors.items()
    }
    assert any("gamma" in k for k in legacy)
    rewrite(tmp_path, legacy)
    again = load_model(tmp_path, strict=True)
    np.testing.assert_array_equal(again(ids), model(ids))
    assert again.report.renamed["bert.embeddings.LayerNorm.weight"] == "bert.embeddings.LayerNorm.gamma"
    zoo.save(again, tmp_path / "again")
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == legacy.keys()


def test_both_spellings_at_once_are_refused(masked_lm, tmp_path):
    _, tensors = masked_lm
    rewrite(tmp_path, {**tensors, "bert.embeddings.LayerNorm.gamma": tensors["bert.embeddings.LayerNorm.weight"]})
    with pytest.raises(CheckpointError, match=r"two spellings.*bert\.embeddings\.LayerNorm\.weight"):
        load_model(tmp_path)


def test_a_body_file_loads_into_a_head_model(masked_lm, tmp_path, ids):
    model, tensors = masked_lm
    rewrite(tmp_path, {k.removeprefix("bert."): v for k, v in tensors.items()})
    np.testing.assert_array_equal(load_model(tmp_path, strict=True)(ids), model(ids))


def test_a_head_file_loads_into_a_bare_model(masked_lm, tmp_path, ids):
    model, _ = masked_lm
    body = BertModel.from_pretrained(tmp_path, strict=True)
    assert body.pooler is None
    assert body(ids).pooler_output is None
    np.testing.assert_array_equal(body(ids).last_hidden_state, model.base_model(ids).last_hidden_state)
    assert "cls.predictions.bias" in body.report.ignored


def test_tied_if_only_the_words_are_there(masked_lm, tmp_path, ids):
    _, tensors = masked_lm
    assert DECODER not in tensors
    model = load_model(tmp_path)
    assert model.head.decoder.weight is model.base_model.embeddings.word
    assert model.report.tied[DECODER] == WORDS


def test_tied_if_both_are_there_and_equal(masked_lm, tmp_path, ids):
    model, tensors = masked_lm
    both = {**tensors, DECODER: tensors[WORDS], "cls.predictions.decoder.bias": tensors["cls.predictions.bias"]}
    rewrite(tmp_path, both)
    again = load_model(tmp_path, strict=True)
    assert again.head.decoder.weight is again.base_model.embeddings.word
    np.testing.assert_array_equal(again(ids), model(ids))
    zoo.save(again, tmp_path / "again")
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == both.keys()


def test_kept_apart_if_both_are_there_and_differ(masked_lm, tmp_path, ids):
    model, tensors = masked_lm
    rewrite(tmp_path, {**tensors, DECODER: tensors[WORDS] * 2})
    again = load_model(tmp_path, strict=True)
    assert not again.report.tied.get(DECODER)
    bias = tensors["cls.predictions.bias"]
    np.testing.assert_allclose(again(ids) - bias, 2 * (model(ids) - bias), rtol=1e-4, atol=1e-4)


def test_only_the_projection_is_there(masked_lm, tmp_path, ids):
    model, tensors = masked_lm
    rewrite(tmp_path, {(DECODER if k == WORDS else k): v for k, v in tensors.items()})
    np.testing.assert_array_equal(load_model(tmp_path, strict=True)(ids), model(ids))


def test_both_absent_is_an_error(masked_lm, tmp_path):
    _, tensors = masked_lm
    rewrite(tmp_path, {k: v for k, v in tensors.items() if k != WORDS})
    with pytest.raises(MissingWeightError, match="word_embeddings"):
        load_model(tmp_path)


def test_strays_are_ignored_and_reported(tmp_path, ids):
    model, tensors = saved(RobertaForSequenceClassification, RobertaConfig.from_dict(SMALL), tmp_path)
    strays = {
        "roberta.embeddings.position_ids": np.arange(20)[None],
        "roberta.pooler.dense.weight": np.zeros((16, 16), np.float32),
        "roberta.pooler.dense.bias": np.zeros(16, np.float32),
    }
    rewrite(tmp_path, {**tensors, **strays})
    again = load_model(tmp_path, strict=True)
    np.testing.assert_array_equal(again(ids), model(ids))
    assert set(again.report.ignored) == set(strays)


def test_unknown_tensors_warn_and_are_an_error_when_strict(masked_lm, tmp_path):
    _, tensors = masked_lm
    rewrite(tmp_path, {**tensors, "bert.encoder.layer.0.attention.self.distance_embedding.weight": np.zeros((3, 3))})
    with pytest.warns(UserWarning, match="distance_embedding"):
        assert load_model(tmp_path).report.unused
    with pytest.raises(UnusedWeightError, match="distance_embedding"):
        load_model(tmp_path, strict=True)


def test_a_wrong_prefix_is_an_error(masked_lm, tmp_path):
    """transformers only warns here, and fills the model with random numbers."""
    _, tensors = masked_lm
    rewrite(tmp_path, {f"model.{k}": v for k, v in tensors.items()})
    with pytest.raises(MissingWeightError, match=r"word_embeddings.*did you mean 'model\.bert"):
        load_model(tmp_path)


def test_a_missing_head_names_the_architecture(masked_lm, tmp_path):
    with pytest.raises(MissingWeightError, match=r"BertForTokenClassification.*BertForMaskedLM.*classifier\.weight"):
        load_model(tmp_path, head="ForTokenClassification")


def test_a_wrong_shape_names_the_config_field(masked_lm, tmp_path):
    _, tensors = masked_lm
    rewrite(tmp_path, {**tensors, WORDS: tensors[WORDS][:40]})
    with pytest.raises(WeightShapeError, match=r"\(40, 16\), expected \(50, 16\) \(by vocab_size = 50 in the config\)"):
        load_model(tmp_path)


def test_integers_for_floats_are_refused(masked_lm, tmp_path):
    _, tensors = masked_lm
    rewrite(tmp_path, {**tensors, WORDS: tensors[WORDS].astype(np.int64)})
    with pytest.raises(CheckpointError, match=r"word_embeddings.*I64"):
        load_model(tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cls", [BertForMaskedLM, RobertaForMaskedLM])
def test_narrow_files_are_widened_and_written_back_exactly(cls, dtype, tmp_path, ids):
    model = cls.from_config(cls.config_class.from_dict(SMALL))
    zoo.save(model, tmp_path / "narrow", dtype=dtype)
    again = load_model(tmp_path / "narrow", strict=True)
    y = again(ids)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, model(ids), atol=0.1)
    zoo.save(again, tmp_path / "again")
    a, b = (tmp_path / f / "model.safetensors" for f in ("narrow", "again"))
    assert a.read_bytes() == b.read_bytes()
    with pytest.raises(zoo.ZooError, match="bfloat16"):
        load_model(tmp_path / "narrow", dtype="bfloat16")


def test_weights_are_mapped_not_copied(masked_lm, tmp_path):
    model = load_model(tmp_path)
    for array in (model.base_model.embeddings.word, model.base_model.layers[0].up.weight):
        assert not array.flags.owndata
        assert not array.flags.writeable


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_named(masked_lm, tmp_path, value):
    _, tensors = masked_lm
    bad = tensors[WORDS].copy()
    bad[3, 4] = value
    rewrite(tmp_path, {**tensors, WORDS: bad})
    with pytest.warns(UserWarning, match=rf"has NaN or infinity in {WORDS}"):
        load_model(tmp_path)


def test_saving_in_another_type_says_so_in_the_config(masked_lm, tmp_path):
    model, _ = masked_lm
    zoo.save(model, tmp_path / "half", dtype="float16")
    config = json.loads((tmp_path / "half" / "config.json").read_text())
    assert config["torch_dtype"] == "float16"
    assert "dtype" not in config


def test_saving_refuses_what_would_lose_something(masked_lm, tmp_path):
    model, _ = masked_lm
    words = model.base_model.embeddings.word
    model.base_model.embeddings.word = words * 0
    with pytest.raises(zoo.ZooError, match=r"word_embeddings.* is shared by parts of the model that now differ"):
        zoo.save(model, tmp_path / "edited")
    model.base_model.embeddings.word = words
    model.base_model.layers[0].down.weight = model.base_model.layers[0].down.weight * np.float32(1e7)
    with pytest.raises(zoo.ZooError, match=r"layer\.0\.output\.dense\.weight has values beyond float16"):
        zoo.save(model, tmp_path / "half", dtype="float16")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_saving_in_another_type_holds_one_tensor_at_a_time(tmp_path, dtype):
    config = BertConfig(
        vocab_size=4000, hidden_size=256, num_hidden_layers=8, num_attention_heads=4, intermediate_size=1024
    )
    model = BertModel.from_config(config)
    parameters = count_parameters(model)
    largest = 4000 * 256
    assert parameters > 7 * largest
    zoo.save(model, tmp_path / "first")  # what is imported at first use is not counted
    tracemalloc.start()
    try:
        zoo.save(model, tmp_path / "narrow", dtype=dtype)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2 * largest + (4 << 20)
    assert (tmp_path / "narrow" / "model.safetensors").stat().st_size == pytest.approx(2 * parameters, rel=0.01)


def test_a_save_that_fails_changes_nothing(masked_lm, tmp_path):
    model, _ = masked_lm
    zoo.save(model, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model.base_model.layers[0].down.weight = model.base_model.layers[0].down.weight * np.float32(1e7)
    with pytest.raises(zoo.ZooError, match="beyond float16"):
        zoo.save(model, tmp_path, dtype="float16")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_torch_gets_one_element_type(masked_lm, tmp_path, ids):
    torch = pytest.importorskip("torch", reason="needs torch")
    _, tensors = masked_lm
    rewrite(tmp_path, {k: v.astype(np.float16) if "layer.0" in k else v for k, v in tensors.items()})
    assert load_model(tmp_path, device="torch:cpu")(ids).dtype == torch.float32
    rewrite(tmp_path, {k: v.astype(np.float16) for k, v in tensors.items()})
    assert load_model(tmp_path, device="torch:cpu")(ids).dtype == torch.float16


def test_many_may_save_into_one_folder_at_once(masked_lm, tmp_path):
    model, tensors = masked_lm
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: zoo.save(model, tmp_path / "shared"), range(8)))
    assert load_file(tmp_path / "shared" / "model.safetensors").keys() == tensors.keys()
    assert sorted(p.name for p in (tmp_path / "shared").iterdir()) == ["config.json", "model.safetensors"]


class _Computes(BertModel):
    """A model class whose author has an array as an attribute."""

    def __init__(self, w, cfg, pooler=None):
        super().__init__(w, cfg, pooler)
        self.add(w)


def _with(name, value):
    """A class that sets an attribute of its first layer to value(model, w)."""

    def add(self, w):
        setattr(self.layers[0], name, value(self, w))

    return type("Computes", (_Computes,), {"add": add})


@pytest.mark.parametrize(
    ("value", "path", "shape"),
    [
        (lambda self, w: ops.zeros((3, 4), self.embeddings.word), "layers.0.table", r"\(3, 4\)"),
        (lambda self, w: self.embeddings.word[:7], "layers.0.table", r"\(7, 16\)"),
        (lambda self, w: [ops.zeros((5,), self.embeddings.word)], "layers.0.table.0", r"\(5,\)"),
        (lambda self, w: np.float32(2.0), "layers.0.table", r"\(\)"),
    ],
)
@pytest.mark.parametrize("trainable", [False, True])
def test_a_computed_array_is_named(value, path, shape, trainable):
    if trainable:
        pytest.importorskip("torch", reason="trains on torch")
    options = {"device": "torch:cpu", "trainable": True} if trainable else {}
    with pytest.raises(UnsupportedError, match=rf"attribute {path} is an array of shape {shape}.* layers\.0\._table,"):
        _with("table", value).from_config(BertConfig.from_dict(SMALL), **options)
    _with("_table", value).from_config(BertConfig.from_dict(SMALL), **options)


@pytest.mark.parametrize(("name", "in_dict"), [("table", True), ("_table", False)])
def test_a_tensor_that_would_be_saved_nowhere_is_named(name, in_dict):
    def value(self, w):
        array = w.get("new.weight", (3,))
        return {"new": array} if in_dict else array

    with pytest.raises(UnsupportedError, match=r"has read 'new\.weight' and would be saved without"):
        _with(name, value).from_config(BertConfig.from_dict(SMALL))


def test_an_array_added_later_is_named(masked_lm, tmp_path):
    model, _ = masked_lm
    model.base_model.table = np.ones((2, 2), np.float32)
    with pytest.raises(UnsupportedError, match=r"attribute base_model\.table is an array .* base_model\._table,"):
        zoo.save(model, tmp_path / "again")
