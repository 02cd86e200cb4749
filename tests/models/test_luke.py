"""LUKE: entities of any number, the files of several versions, its tokenizer, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.apps.onnx_export.export import export
from zoo.errors import ConfigError, InputError, MissingWeightError, UnsupportedError
from zoo.loading import load_model
from zoo.models.luke import LukeConfig
from zoo.weights.files import open_weights
from zoo.weights.safetensors import write_safetensors

IDS = np.array([[0, 7, 8, 9, 10, 2], [0, 9, 11, 2, 1, 1]])
MASK = (IDS != 1).astype(np.int64)
PLACES = np.array([[[1, 2, 3], [4, -1, -1]], [[2, -1, -1], [-1, -1, -1]]])
ENTITIES = {"entity_ids": np.array([[3, 5], [7, 0]]), "entity_position_ids": PLACES}
ENTITY_MASK = {"entity_attention_mask": np.array([[1, 1], [1, 0]])}


def reference(folder, head):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    return getattr(transformers, f"Luke{head}").from_pretrained(folder, attn_implementation="eager").eval()


def run(model, **arrays):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    with torch.no_grad():
        return model(**{name: torch.tensor(array) for name, array in arrays.items()})


@pytest.mark.filterwarnings("ignore:.*that LukeModel does not know")
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("given", [{}, {"attention_mask": MASK}, ENTITY_MASK, {"attention_mask": MASK, **ENTITY_MASK}])
@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_entities_with_and_without_masks_and_places(given, aware, device, tmp_path):
    """An entity without a place has no position, and a mask of the text or of the entities may be left out."""
    path = build("luke-bare", tmp_path)
    if not aware:
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**config, "use_entity_aware_attention": False}))
    wanted = run(reference(path, "Model"), input_ids=IDS, **ENTITIES, **given)
    ours: Any = load_model(path, device=device, strict=aware)
    found = ours(IDS, **ENTITIES, **given)
    seen = given.get("attention_mask", np.ones_like(IDS)) == 1
    known = given.get("entity_attention_mask", np.ones((2, 2))) == 1
    for name, rows in (("last_hidden_state", seen), ("entity_last_hidden_state", known), ("pooler_output", ...)):
        got = np.asarray(zoo.ops.to_numpy(getattr(found, name)))[rows]
        np.testing.assert_allclose(got, wanted[name].numpy()[rows], atol=1e-5)
    assert ours(IDS).entity_last_hidden_state is None


def test_the_words_matrix_of_the_head_is_its_own(tmp_path):
    """As in transformers 5, which draws it at random where a file has none; here that is refused."""
    path = build("luke-base", tmp_path / "whole")
    source = open_weights(path)
    tensors: Any = {name: source.read(name) for name in source.names()}
    words = tensors["luke.embeddings.word_embeddings.weight"]
    found = []
    for i, more in enumerate(({"lm_head.decoder.weight": words}, {})):
        (folder := tmp_path / str(i)).mkdir()
        kept = {name: one for name, one in tensors.items() if name != "lm_head.decoder.weight"}
        write_safetensors(folder / "model.safetensors", {**kept, **more})
        (folder / "config.json").write_bytes((path / "config.json").read_bytes())
        found.append(folder)
    logits: Any = load_model(found[0], strict=True)
    ours, wanted = logits(IDS, **ENTITIES), run(reference(found[0], "ForMaskedLM"), input_ids=IDS, **ENTITIES)
    np.testing.assert_allclose(ours.logits, wanted.logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(ours.entity_logits, wanted.entity_logits.numpy(), atol=1e-4)
    with pytest.raises(MissingWeightError, match=r"lm_head\.decoder\.weight"):
        load_model(found[1])


def test_masks_are_filled_by_a_model_and_by_its_export(tmp_path):
    path = build("luke-base", tmp_path / "luke")
    fill = zoo.load(path, task="fill-mask")
    wanted = fill("They <mask> about it.")
    export(path, tmp_path / "graphs", task="fill-mask")
    found = zoo.load(tmp_path / "graphs", device="onnx", task="fill-mask")("They <mask> about it.")
    assert [one.token for one in found] == [one.token for one in wanted]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in wanted], rtol=1e-4)


def test_tokens(tmp_path):
    """Those of transformers, but for the four entities that version 5 puts among the words."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    from tests.text.tokenizer_samples import TEXTS, differences
    from zoo.text.tokenizer import Tokenizer

    path = build("luke-base", tmp_path)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(path), Tokenizer.from_folder(path)
    texts = [text for text in TEXTS if "[MASK]" not in text] + ["<ent>Ada<ent> met <ent2> Bob <ent2>"]
    found = differences(theirs, ours, texts)
    assert {what for what, *_ in found} == {"size", "vocabulary"}
    (vocabulary,) = [pair for what, _, *pair in found if what == "vocabulary"]
    assert vocabulary[0].keys() - vocabulary[1].keys() == {"[MASK]", "[MASK2]", "[PAD]", "[UNK]"}
    assert vocabulary[1].items() <= vocabulary[0].items()
    assert max(ours("[MASK] and [PAD]").input_ids[0]) < 900
    config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "entity_mask_token": "[MASK]"}))
    assert Tokenizer.from_folder(path).vocab_size == ours.vocab_size


@pytest.mark.parametrize("name", ["luke-large-finetuned-open-entity", "luke-large-finetuned-conll-2003"])
def test_losses_of_one_class_and_of_several(name, tmp_path, rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    from zoo.apps.train import compute_loss

    path = build(name, tmp_path)
    model: Any = load_model(path, device="torch:cpu", trainable=True).eval()
    theirs = reference(path, model.architecture.removeprefix("Luke"))
    given = {"input_ids": IDS, **ENTITIES}
    if model.needs_spans:
        given |= {
            "entity_start_positions": np.array([[1, 4], [2, 0]]),
            "entity_end_positions": np.array([[3, 4], [2, 0]]),
        }
    shape = (2, 2) if model.needs_spans else (2,)
    several = [rng.integers(0, 5, shape)]
    if not model.needs_spans:
        several.append(rng.integers(0, 2, (2, 5)))
    for labels in several:
        arrays = {name: torch.tensor(array) for name, array in given.items()}
        wanted = theirs(**arrays, labels=torch.tensor(labels)).loss
        torch.testing.assert_close(compute_loss(model, given, labels), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="labels have shape"):
        compute_loss(model, given, np.zeros((*shape, 4)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"entity_ids": [[1]]}, "needs entity_position_ids"),
        ({"entity_position_ids": [[[1]]]}, "needs entity_ids"),
        ({"entity_attention_mask": [[1]]}, "needs entity_ids"),
        ({"entity_ids": [[90]], "entity_position_ids": [[[1]]]}, r"entity_ids must be in \[0, 90\)"),
        ({"entity_ids": [[1]], "entity_position_ids": [[[-2]]]}, "found -2 to -2"),
        ({"entity_ids": [[1]], "entity_position_ids": [[[66]]]}, "entity_position_ids must be in"),
        ({"entity_ids": [[1]], "entity_position_ids": [[[0.5]]]}, "must be integers"),
        ({"entity_ids": [[1]], "entity_position_ids": [[[1], [2, 3]]]}, "not a rectangular list"),
        ({"entity_ids": [[1]], "entity_position_ids": [[[1], [2]]]}, r"expected \(1, 1\) and places"),
        ({"entity_ids": [[1], [1]], "entity_position_ids": [[[1]]]}, "entity_ids"),
        (
            {"entity_ids": [[1]], "entity_position_ids": [[[1]]], "entity_token_type_ids": [[1]]},
            "entity_token_type_ids",
        ),
        ({"entity_ids": [[1]], "entity_position_ids": [[[1]]], "entity_attention_mask": [[1, 1]]}, "entity_attention"),
        ({"entity_idz": [[1]]}, "takes no entity_idz"),
    ],
)
def test_entities_that_do_not_fit(given, message, tmp_path):
    model: Any = load_model(build("luke-bare", tmp_path))
    with pytest.raises(InputError, match=message):
        model([[0, 7, 2]], **given)


def test_heads_of_entities_need_them(tmp_path):
    pair: Any = load_model(build("luke-large-finetuned-tacred", tmp_path / "pair"))
    span: Any = load_model(build("luke-large-finetuned-conll-2003", tmp_path / "span"))
    one = {"entity_ids": [[1]], "entity_position_ids": [[[1]]]}
    for model in (pair, span):
        with pytest.raises(InputError, match="needs entity_ids"):
            model([[0, 7, 2]])
    with pytest.raises(InputError, match="needs 2 entities of each text, found 1"):
        pair([[0, 7, 2]], **one)
    with pytest.raises(InputError, match="needs entity_start_positions"):
        span([[0, 7, 2]], **one)
    with pytest.raises(InputError, match=r"entity_end_positions must be in \[0, 3\)"):
        span([[0, 7, 2]], **one, entity_start_positions=[[0]], entity_end_positions=[[3]])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"entity_vocab_size": 0}, ConfigError),
        ({"entity_emb_size": -1}, ConfigError),
        ({"num_attention_heads": 7}, ConfigError),
        ({"is_decoder": True}, UnsupportedError),
        ({"use_entity_aware_attention": 1}, ConfigError),
    ],
)
def test_configs_that_are_refused(change, error):
    with pytest.raises(error):
        LukeConfig.from_dict(change)
