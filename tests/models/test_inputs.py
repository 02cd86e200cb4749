"""Inputs of a model: refused with the argument's name, or answered with finite numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from zoo.cache import KVCache
from zoo.errors import InputError
from zoo.models.beit import BeitModel
from zoo.models.bert import BertConfig, BertForTokenClassification, BertLMHeadModel, BertModel
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, LlamaModel
from zoo.models.roberta import RobertaConfig, RobertaModel, XLMRobertaConfig
from zoo.models.vit import ViTForImageClassification, ViTModel

SMALL = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 20,
}


@pytest.fixture(params=["cpu", "torch:cpu"])
def model(request):
    if request.param != "cpu":
        pytest.importorskip("torch", reason="needs torch")
    return BertModel.from_config(BertConfig.from_dict(SMALL), device=request.param)


IDS = np.array([[5, 6, 7, 8], [9, 10, 0, 0]])
MASK = IDS != 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"input_ids": [[5, -1]]}, r"input_ids must be in \[0, 50\), found -1"),
        ({"input_ids": [[5, 50]]}, r"input_ids must be in \[0, 50\), found .*50"),
        ({"input_ids": [[2**40, 1]]}, "input_ids"),
        ({"input_ids": [[2**70, 1]]}, "input_ids"),
        ({"input_ids": [[1.0, 2.0]]}, "input_ids must be integers, found dtype float64"),
        ({"input_ids": [["a"]]}, "input_ids must be integers"),
        ({"input_ids": [[True]]}, "input_ids must be integers"),
        ({"input_ids": [5, 6]}, r"input_ids has shape \(2,\), expected 2 dimensions"),
        ({"input_ids": [[5, 6], [7]]}, "input_ids is not a rectangular list"),
        ({"input_ids": [[]]}, r"input_ids is empty: its shape is \(1, 0\)"),
        (
            {"inputs_embeds": np.zeros((2, 3, 31))},
            r"inputs_embeds has shape \(2, 3, 31\) .*expected floats \(B, T, 32\)",
        ),
        ({"input_ids": IDS, "encoder_attention_mask": MASK}, "needs encoder_hidden_states"),
        ({"input_ids": None}, "found neither of input_ids and inputs_embeds"),
        ({"input_ids": "text"}, "expected a numpy.ndarray or a torch.Tensor, found builtins.str"),
        ({"input_ids": np.zeros((1, 21), int)}, "21 tokens, but the checkpoint has positions for 20"),
        ({"input_ids": IDS, "attention_mask": MASK[:, :3]}, r"attention_mask has shape \(2, 3\), expected \(2, 4\)"),
        ({"input_ids": IDS, "attention_mask": MASK * 2}, "attention_mask must hold only 0"),
        ({"input_ids": IDS, "attention_mask": (MASK - 1.0) * 1e9}, "attention_mask must hold only 0"),
        ({"input_ids": IDS, "token_type_ids": IDS}, r"token_type_ids must be in \[0, 2\)"),
        (
            {"input_ids": IDS, "token_type_ids": IDS[:1, :2] * 0},
            r"token_type_ids has shape \(1, 2\), expected \(2, 4\)",
        ),
        ({"input_ids": IDS, "position_ids": IDS + 15}, r"position_ids must be in \[0, 20\)"),
        ({"input_ids": IDS, "encoder_hidden_states": np.zeros((2, 3, 32))}, "add_cross_attention = False"),
    ],
)
def test_refused(model, arguments, says):
    with pytest.raises(InputError, match=says):
        model(**arguments)


def test_segments_of_a_model_with_one_segment():
    model = RobertaModel.from_config(XLMRobertaConfig.from_dict({**SMALL, "type_vocab_size": 1}))
    with pytest.raises(InputError, match=r"token_type_ids must be in \[0, 1\), found 0 to 1"):
        model(IDS, token_type_ids=[[0, 0, 1, 1], [0, 0, 0, 0]])


def test_roberta_counts_its_positions_after_the_padding_id():
    model = RobertaModel.from_config(RobertaConfig.from_dict(SMALL))
    model(np.full((1, 18), 7))
    with pytest.raises(InputError, match="19 tokens, but the checkpoint has positions for 18"):
        model(np.full((1, 19), 7))


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64])
def test_kinds_of_integers_and_masks(kind):
    model = BertModel.from_config(BertConfig.from_dict(SMALL))
    wanted = model(IDS, MASK).last_hidden_state
    for mask in (MASK, MASK.astype(np.int64), MASK.astype(np.float32), MASK.tolist()):
        np.testing.assert_array_equal(model(IDS.astype(kind), mask).last_hidden_state, wanted)
    wide = np.zeros((2, 8), kind)
    wide[:, ::2] = IDS
    np.testing.assert_array_equal(model(wide[:, ::2], np.repeat(MASK, 2, 1)[:, ::2]).last_hidden_state, wanted)


def test_a_row_without_tokens_gives_finite_numbers(model):
    y = model([[5, 6, 7], [5, 6, 7]], [[1, 1, 1], [0, 0, 0]]).last_hidden_state
    assert np.isfinite(np.asarray(y)).all()


def test_padding_on_either_side_changes_nothing(model):
    alone = np.asarray(model([[5, 6, 7]]).last_hidden_state)[0]
    right = np.asarray(model([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]], [[1, 1, 1, 0, 0], [1] * 5]).last_hidden_state)[0, :3]
    at = [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    left = np.asarray(
        model([[0, 0, 5, 6, 7], [5, 6, 7, 8, 9]], [[0, 0, 1, 1, 1], [1] * 5], position_ids=at).last_hidden_state
    )[0, 2:]
    scale = np.linalg.norm(alone)
    assert np.linalg.norm(right - alone) <= 1e-6 * scale
    assert np.linalg.norm(left - alone) <= 1e-6 * scale


def test_one_model_from_many_threads_at_once():
    model = BertModel.from_config(BertConfig.from_dict({**SMALL, "hidden_size": 128, "max_position_embeddings": 64}))
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, 50, (1 + i % 3, 3 + 5 * (i % 12))) for i in range(48)]
    wanted = [model(t).last_hidden_state for t in texts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda t: model(t).last_hidden_state, texts))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_same_numbers_every_time():
    model = BertModel.from_config(BertConfig.from_dict(SMALL))
    first = model(IDS, MASK).last_hidden_state
    for _ in range(5):
        np.testing.assert_array_equal(model(IDS, MASK).last_hidden_state, first)


def test_cache_of_a_decoder():
    model = BertLMHeadModel.from_config(BertConfig.from_dict({**SMALL, "is_decoder": True}))
    cache = model.base_model.new_cache(2, 8)
    with pytest.raises(InputError, match="3 rows, but the cache was made for 2"):
        model(np.full((3, 2), 7), cache=cache)
    model(IDS, cache=cache)
    with pytest.raises(InputError, match="has room for 8 tokens: 4 are in it, 5 more do not fit"):
        model(np.full((2, 5), 7), cache=cache)
    encoder = BertModel.from_config(BertConfig.from_dict(SMALL))
    with pytest.raises(InputError, match="is_decoder = False"):
        encoder(IDS, cache=cache)


LLAMA = {**SMALL, "num_key_value_heads": 1}
IMAGES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32}


@pytest.mark.parametrize(
    ("model", "arguments", "says"),
    [
        (
            BertModel,
            {"attention_masks": MASK},
            "BertModel takes no attention_masks, only .*; did you mean 'attention_mask'",
        ),
        (
            BertForTokenClassification,
            {"cache": KVCache(1, 2, 4, 1, 1, np.zeros(1))},
            "takes no cache, only input_ids, ",
        ),
        (BertForTokenClassification, {"encoder_hidden_states": np.zeros((2, 3, 32))}, "takes no encoder_hidden_states"),
        (BertModel, {"logits_to_keep": 1}, "BertModel takes no logits_to_keep"),
        (LlamaModel, {"token_type_ids": IDS * 0}, "LlamaModel takes no token_type_ids, only input_ids, position_ids, "),
        (LlamaForCausalLM, {"encoder_hidden_states": np.zeros((2, 3, 32))}, "takes no encoder_hidden_states"),
        (
            LlamaForSequenceClassification,
            {"input_ids": None, "inputs_embeds": np.zeros((2, 3, 32))},
            "no inputs_embeds",
        ),
    ],
)
def test_what_a_class_does_not_take(model, arguments, says):
    sizes = LLAMA if model.config_class is LlamaConfig else SMALL
    with pytest.raises(InputError, match=says):
        model.from_config(model.config_class.from_dict(sizes))(**{"input_ids": IDS, **arguments})


@pytest.mark.parametrize(
    ("model", "arguments", "says"),
    [
        (ViTModel, {"pixel_mask": np.ones((1, 32, 32), bool)}, "ViTModel takes no pixel_mask, only pixel_values, bool"),
        (ViTForImageClassification, {"bool_masked_pos": np.ones((1, 4), bool)}, "takes no bool_masked_pos"),
        (BeitModel, {"interpolate_pos_encoding": True}, "BeitModel takes no interpolate_pos_encoding"),
        (ViTModel, {"interpolate_pos_encodings": True}, "did you mean 'interpolate_pos_encoding'"),
    ],
)
def test_what_a_class_of_images_does_not_take(model, arguments, says):
    with pytest.raises(InputError, match=says):
        model.from_config(model.config_class(**IMAGES))(np.zeros((1, 32, 32, 3)), **arguments)
