"""Models are broken on purpose: the report must say so, and name the stage where it begins."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from bench import own

from parity.checkpoints import build
from parity.reference import Reference
from parity.stages import compare_tokenizers, zoo_stages
from parity.taps import body_of
from zoo.errors import InputError
from zoo.text.tokenizer import Tokenizer


def wrong_eps_in_a_layer(model):
    body_of(model).layers[1].norm.eps = 1e-3


def missing_bias(model):
    body_of(model).layers[2].down.bias = None


def missing_value_bias(model):
    bias = own(body_of(model).layers[1].attention.qkv).bias
    bias[2 * len(bias) // 3 :] = 0


def positions_off_by_one(model):
    embeddings = body_of(model).embeddings
    embeddings.position = np.roll(embeddings.position, -1, 0)


def segments_ignored(model):
    embeddings = body_of(model).embeddings
    embeddings.token_type = np.repeat(embeddings.token_type[:1], 2, 0)


def heads_in_another_order(model):
    attention = body_of(model).layers[1].attention
    qkv = own(attention.qkv)
    D, H = len(qkv.bias) // 3, attention.heads
    order = np.arange(3 * D).reshape(3, D // H, H).transpose(0, 2, 1).ravel()
    qkv.weight, qkv.bias = qkv.weight[order], qkv.bias[order]


def transposed_weight(model):
    out = own(body_of(model).layers[2].attention.out)
    out.weight = out.weight.T.copy()


def mask_forgotten(model):
    attention = body_of(model).layers[0].attention
    body_of(model).layers[0].attention = lambda x, c, cache: attention(x, c._replace(mask=None), cache)


def mask_off_by_one(model):
    attention = body_of(model).layers[1].attention

    def broken(x, c, cache):
        return attention(x, c._replace(mask=None if c.mask is None else np.roll(c.mask, 1, 1)), cache)

    body_of(model).layers[1].attention = broken


def layers_swapped(model):
    layers = body_of(model).layers
    layers[1], layers[2] = layers[2], layers[1]


def norm_forgotten(model):
    body_of(model).layers[1].attention.norm = lambda x, residual: x + residual


def half_precision(model):
    layer, attention = body_of(model).layers[1], body_of(model).layers[1].attention
    layer.attention = lambda *args: attention(*args).astype(np.float16).astype(np.float32)


def head_bias_forgotten(model):
    model.head.decoder.bias = None


def head_activation_forgotten(model):
    model.head.dense.act = None


def not_causal(model):
    for layer in body_of(model).layers:
        attention = layer.attention
        layer.attention = lambda x, c, cache, inner=attention: inner(x, c._replace(start=None), cache)


def cache_forgets_the_past(model):
    for layer in body_of(model).layers:
        attention = layer.attention
        layer.attention = lambda x, c, cache, inner=attention: inner(x, c, None)


def encoder_mask_forgotten(model):
    cross = body_of(model).layers[0].cross
    body_of(model).layers[0].cross = lambda x, c, cache: cross(x, c._replace(encoder_mask=None), cache)


def pooler_of_the_last_token(model):
    body = body_of(model)
    pooler = body.pooler
    body.pooler = lambda first: pooler(first[::-1])


def pooler_without_tanh(model):
    model.pooler.act = None


def start_and_end_swapped(model):
    head = own(model.qa_outputs)
    head.weight, head.bias = head.weight[::-1].copy(), head.bias[::-1].copy()


def positions_count_padding(model):
    embeddings = body_of(model).embeddings
    embeddings.positions = lambda t: np.arange(t.shape[1]) + t.past + embeddings.pad + 1


def positions_from_zero(model):
    embeddings = body_of(model).embeddings
    positions = embeddings.positions
    embeddings.positions = lambda t: np.maximum(positions(t) - embeddings.pad - 1, 0)


@pytest.mark.parametrize(
    ("name", "fault", "stage"),
    [
        ("bert-base-uncased", wrong_eps_in_a_layer, "layer.1"),
        ("bert-base-uncased", missing_bias, "layer.2"),
        ("bert-base-uncased", missing_value_bias, "layer.1"),
        ("bert-base-uncased", positions_off_by_one, "embeddings"),
        ("bert-base-uncased", segments_ignored, "embeddings"),
        ("bert-base-uncased", heads_in_another_order, "layer.1"),
        ("bert-base-uncased", transposed_weight, "layer.2"),
        ("bert-base-uncased", mask_forgotten, "layer.0"),
        ("bert-base-uncased", mask_off_by_one, "layer.1"),
        ("bert-base-uncased", layers_swapped, "layer.1"),
        ("bert-base-uncased", norm_forgotten, "layer.1"),
        ("bert-base-uncased", half_precision, "layer.1"),
        ("bert-base-uncased", head_bias_forgotten, "logits"),
        ("bert-base-uncased", head_activation_forgotten, "logits"),
        ("bert-cross-decoder", not_causal, "layer.0"),
        ("bert-cross-decoder", encoder_mask_forgotten, "layer.0"),
        ("bert-cross-decoder", cache_forgets_the_past, "cached logits"),
        ("all-MiniLM-L6-v2", pooler_of_the_last_token, "pooler_output"),
        ("all-MiniLM-L6-v2", pooler_without_tanh, "pooler_output"),
        ("roberta-base-squad2", start_and_end_swapped, "start_logits"),
        ("roberta-base-squad2", positions_count_padding, "embeddings"),
        ("roberta-base-squad2", positions_from_zero, "embeddings"),
    ],
)
def test_a_fault_is_found_where_it_is(bench, name, fault, stage):
    bench = bench(name)
    model = bench.load()
    assert bench.first_wrong(model) is None
    fault(model)
    assert bench.first_wrong(model) == stage


def test_the_model_is_left_as_it_was(bench):
    bench = bench("bert-base-uncased")
    model = bench.load()
    before = dict(vars(model.base_model))
    with pytest.raises(InputError):
        zoo_stages(model, bench.inputs[0]._replace(arrays={}))
    bench.first_wrong(model)
    assert vars(model.base_model) == before


def test_another_tokenizer_is_found(bench, tmp_path):
    bench = bench("bert-base-uncased")
    build("bert-base-uncased", tmp_path)
    assert compare_tokenizers(bench.tokenizer, bench.reference, bench.inputs).holds
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "model_max_length": 64}')
    cased = compare_tokenizers(Tokenizer.from_folder(tmp_path), bench.reference, bench.inputs)
    assert not cased.holds
    assert "rows differ" in cased.note


def test_a_reference_that_would_invent_weights_is_refused(bench, tmp_path):
    from parity.reference import BadReferenceError

    build("roberta-ner", tmp_path)
    with pytest.raises(BadReferenceError, match=r"transformers finds no .*qa_outputs"):
        Reference(tmp_path, "RobertaForQuestionAnswering")


def test_a_config_read_wrongly_is_found(bench):
    """The whole model follows another config than the file's, as a port that ignores a field would."""
    bench = bench("roberta-base-squad2")
    model = bench.load()
    config = dataclasses.replace(model.config, layer_norm_eps=1e-12)
    assert bench.first_wrong(type(model).from_pretrained(bench.folder)) is None
    from zoo.weights.files import open_weights

    broken = type(model).from_source(open_weights(bench.folder), config)
    assert bench.first_wrong(broken) == "embeddings"
