"""int8 by ONNX Runtime: the arithmetic against a naive twin, what it costs in quality, and that no sum is cut off."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import zoo
from tests.ops import naive as naive_ops
from zoo import ops
from zoo.engines.onnx.ops import quantised
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.quantised import PLAIN_PRODUCT, Int8, ProductPlan, plan_for, round_to_int8
from zoo.engines.onnx.ops.symbol import FLOAT, Symbol
from zoo.engines.onnx.session import Session
from zoo.engines.onnx.signature import GraphInput
from zoo.engines.onnx.trace import as_symbols, finish, trace
from zoo.inputs import TextInputs
from zoo.models.bert import BertConfig, BertModel
from zoo.models.vit import ViTConfig, ViTModel
from zoo.nn import Module
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor, float_tensor
from zoo.typing import RecordField

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

from zoo.engines.onnx.int8 import has_exact_sums, int8

SMALL: Any = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


class Product(Module):
    """One linear layer."""

    def __init__(self, weight, bias):
        self.weight = weight if isinstance(weight, QuantTensor) else float_tensor(weight)
        self.bias = bias

    def forward(self, x):
        return ops.linear(x, self.weight, self.bias)


def product(weight, precision, standard=False, bias=None):
    """x (N, I) -> (N, O) by ONNX Runtime."""
    graph = GraphBuilder(standard, precision)
    model = as_symbols(graph, Product(weight, bias))
    n = graph.input_dim("N", 3, "x", 0)
    y = model.forward(Symbol(graph, "x", (n, weight.shape[1]), FLOAT))
    traced = finish(graph, [GraphInput("x", ("N", weight.shape[1]), "float32", 0, "x")], [("y", y, False)])
    session = Session(traced.proto().SerializeToString(), "CPUExecutionProvider")
    return lambda x: session({"x": x})[0]


def twin(x, matrix, channels=(), per_token=True, exact=False):
    """The product in float64 of inputs that are quantised as DynamicQuantizeLinear is specified to, in float32."""
    few = list(channels)
    rest, whole = x.copy(), matrix.copy()
    rest[:, few] = whole[:, few] = 0
    data, scale = round_to_int8(whole, exact)
    size = np.abs(rest).max(1, keepdims=True) if per_token else np.ones((len(x), 1), np.float32)
    rest = rest / size
    low, high = min(rest.min(), np.float32(0)), max(rest.max(), np.float32(0))
    step = (high - low) / np.float32(255)
    zero = np.clip(np.rint(-low / step), 0, 255)
    q = np.clip(np.rint(rest / step) + zero, 0, 255).astype(np.float64) - zero
    y = (q * step) @ (data.astype(np.float64) * scale[:, None]).T * size
    return y + x[:, few].astype(np.float64) @ matrix[:, few].T


def error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("shape", [(64, 96), (40, 33), (300, 768)])
def test_a_matrix_is_rounded_by_half_a_step_at_most(shape, exact):
    matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    matrix[3] = 0
    data, scale = round_to_int8(matrix, exact)
    assert data.dtype == np.int8
    assert np.abs(data.astype(int)).max() <= 127
    step = np.maximum(scale, 1e-30)[:, None]
    assert (np.abs(matrix - data * scale[:, None]) <= step * (0.501 if exact else 1.5)).all()
    assert np.mean(np.abs(matrix - data * scale[:, None]) <= step * 0.501) > 0.999
    # 7 bits would be 1.55e-2 at (300, 768).
    assert error(data * scale[:, None], matrix) < (0.009 if exact else 0.012)
    if not exact:
        end = shape[1] // 2 * 2
        pairs = data[:, :end].reshape(shape[0], -1, 2).astype(int)
        assert np.where(pairs.prod(-1) > 0, np.abs(pairs.sum(-1)), 0).max() <= quantised.PAIR


@pytest.mark.parametrize("rows", [1, 2, 5, 40])
def test_no_sum_is_cut_off_whatever_the_processor(rows):
    """Rows of the greatest weights that neighbours may have, at the greatest inputs."""
    rng = np.random.default_rng(1)
    left = rng.integers(1, 128, (64, 64))
    pairs = np.stack([left, quantised.PAIR - left], -1) * rng.choice([-1, 1], (64, 64, 1))
    matrix = pairs.reshape(64, 128).astype(np.float32)
    matrix[:, :2] = (127, 1)  # so that the scale is 1
    data, scale = round_to_int8(matrix)
    assert (data == matrix).all()
    assert (scale == 1).all()
    x = np.repeat(rng.choice([-1.0, 1.0], (rows, 64)), 2, 1).astype(np.float32)
    together = Int8({"weight": ProductPlan(PLAIN_PRODUCT.channels, False)})
    for standard in (False, True):
        found = product(matrix, together, standard)(x)
        assert error(found, twin(x, matrix, per_token=False)) < 1e-6
        ones = np.abs(x)  # 255 of 255
        assert error(product(matrix, together, standard)(ones), ones @ matrix.T) < 1e-6


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize(
    "chosen", [PLAIN_PRODUCT, ProductPlan(PLAIN_PRODUCT.channels, False), ProductPlan(np.array([3, 70]), True)]
)
def test_products_equal_a_naive_twin(chosen, standard):
    rng = np.random.default_rng(2)
    weight, bias = rng.normal(size=(96, 80)).astype(np.float32), rng.normal(size=96).astype(np.float32)
    x = (rng.normal(size=(7, 80)) * rng.uniform(0.1, 9, (7, 1))).astype(np.float32)
    x[:, [3, 70]] *= 50
    found = product(weight, Int8({"weight": chosen}), standard, bias)(x)
    assert error(found, twin(x, weight, *chosen) + bias) < 1e-5


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize(
    "chosen", [PLAIN_PRODUCT, ProductPlan(PLAIN_PRODUCT.channels, False), ProductPlan(np.array([3, 70]), False)]
)
def test_parts_of_a_fused_projection_share_the_rounded_input(chosen, standard):
    rng = np.random.default_rng(8)
    parts = [rng.normal(size=(n, 80)).astype(np.float32) for n in (32, 64, 40)]
    bias = rng.normal(size=136).astype(np.float32)
    x = (rng.normal(size=(7, 80)) * rng.uniform(0.1, 9, (7, 1))).astype(np.float32)
    stacked = QuantTensor([QuantRows(QUANT_TYPES["F32"], 80, (part,)) for part in parts])
    found = product(stacked, Int8({"weight": chosen}), standard, bias)(x)
    assert error(found, twin(x, np.concatenate(parts), *chosen) + bias) < 1e-5


def test_a_token_of_zeros_stays_zero():
    weight = np.ones((40, 40), np.float32)
    x = np.zeros((3, 40), np.float32)
    x[1] = 1
    np.testing.assert_allclose(product(weight, Int8())(x), x * 40, rtol=0.01)


def test_small_heads_are_left_alone():
    model = BertModel.from_config(BertConfig(vocab_size=90, **SMALL))
    record = model.tokens(np.zeros((1, 4), np.int64))
    found = trace(model.forward, record, precision=Int8())
    ops_of = [n.op for n in found.nodes]
    assert ops_of.count("DynamicQuantizeMatMul") == 2 * 3 + 1  # with the pooler
    assert ops_of.count("MatMulIntegerToFloat") == 2 * 3  # queries, keys and values of the same numbers
    assert ops_of.count("DynamicQuantizeLinear") == 2
    weight = np.ones((3, 64), np.float32)
    assert error(product(weight, Int8())(weight), weight @ weight.T) == 0


def test_what_a_product_needs_is_seen_on_its_inputs():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 64))
    even = np.sign(rows) * np.minimum(np.abs(rows), 2)
    assert plan_for(even).channels.size == 0
    assert not plan_for(even).per_token
    far = even.copy()
    far[:, [5, 40]] *= 20
    assert plan_for(far).channels.tolist() == [5, 40]
    assert not plan_for(far).per_token
    uneven = even * rng.uniform(0.05, 1, (200, 1))
    assert plan_for(uneven).per_token
    assert not plan_for(uneven, shares_scale=True).per_token
    assert plan_for(
        even * np.where(rng.random((200, 1)) < 0.02, 50, 1), shares_scale=True
    ).per_token  # such as a first token
    assert plan_for(far, shares_scale=True).channels.tolist() == [5, 40]


def hidden(model, record, precision, running):
    traced = trace(model.encode, record, precision=precision)
    feed = traced.signature.feed(record)
    return running(traced).run(None, feed)[0]


def test_random_models_keep_their_outputs(running):
    rng = np.random.default_rng(4)
    bert = BertModel.from_config(BertConfig(vocab_size=500, **SMALL))
    vit = ViTModel.from_config(ViTConfig(image_size=32, patch_size=8, **SMALL))
    for model, record in (
        (bert, bert.tokens(rng.integers(0, 500, (4, 24)))),
        (vit, vit.pixels(rng.normal(size=(2, 32, 32, 3)).astype(np.float32))),
    ):
        wanted = hidden(model, record, None, running)
        assert error(hidden(model, record, int8(model.encode, record), running), wanted) < 0.02


SENTENCES = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "Zürich, Ωmega ΣΑΣ, 東京 and 😀 in one line",
    "short",
    "A sequence of tokens is mapped to a sequence of vectors, one for each token, by layers of attention.",
    "Error 404: the page at http://example.org/a?b=c was not found on this server, or has moved.",
    "Add the flour, two eggs and a pinch of salt; stir until smooth, then bake for forty minutes.",
    "In 1928 the committee met 14 times; of its 3,512 members, fewer than half voted.",
]


@pytest.fixture(scope="module")
def real(minilm):
    """The real MiniLM: the model, sentences as a record, their embeddings from hidden states (B, T, D)."""
    task = zoo.load(minilm)
    model = task.model
    encoded = [task.tokenizer(one).input_ids[0] for one in SENTENCES]
    width = max(map(len, encoded))
    ids = np.array([[*one, *[0] * (width - len(one))] for one in encoded])
    mask = np.arange(width) < np.array([len(one) for one in encoded])[:, None]

    def embedded(states):
        x = (states * mask[..., None]).sum(1)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    return model, model.tokens(ids, mask), embedded


@pytest.fixture(scope="module")
def measured(real):
    """A function: precision -> the cosines of embeddings with those of float32."""
    model, record, embedded = real
    wanted = embedded(model.encode(record))

    def cosines(precision):
        traced = trace(model.encode, record, precision=precision)
        found = Session(traced.proto().SerializeToString(), "CPUExecutionProvider")(traced.signature.feed(record))[0]
        return (embedded(found) * wanted).sum(1)

    return cosines


def test_real_sentences_keep_their_embeddings(real, measured):
    precision = int8(real[0].encode, real[1])
    cosines = measured(precision)
    assert cosines.mean() > 0.9993
    assert cosines.min() > 0.9985


def test_tokens_that_share_a_scale_keep_their_embeddings_by_outliers(real, measured):
    precision = int8(real[0].encode, real[1], exact=has_exact_sums(), shares_scale=True)
    cosines = measured(precision)
    assert cosines.mean() > 0.997
    assert cosines.min() > 0.995
    precision.plans = {name: ProductPlan(PLAIN_PRODUCT.channels, False) for name in precision.plans}
    assert measured(precision).mean() < 0.995


@pytest.mark.parametrize("fault", ["outliers", "tokens", "7 bits"])
def test_each_measure_is_needed(real, measured, fault, monkeypatch):
    precision = int8(real[0].encode, real[1])
    if fault == "outliers":
        precision.plans = {}
    elif fault == "tokens":
        precision.plans = {name: one._replace(per_token=False) for name, one in precision.plans.items()}
    else:

        def coarse(matrix, exact=False):
            scale = np.abs(matrix).max(1) / 63
            return np.rint(matrix / scale[:, None]).astype(np.int8), scale

        monkeypatch.setattr(quantised, "round_to_int8", coarse)
    assert measured(precision).mean() < 0.9993


def test_a_neighbours_scale_or_a_wrong_zero_is_found(real, measured, monkeypatch):
    def neighbours(matrix, exact=False):
        data, scale = round_to_int8(matrix, exact)
        return data, np.roll(scale, 1)

    precision = int8(real[0].encode, real[1])
    monkeypatch.setattr(quantised, "round_to_int8", neighbours)
    assert measured(precision).mean() < 0.99


class Words(Module):
    def __init__(self, table):
        self.table = table

    def forward(self, ids):
        return ops.embedding(ids, self.table)


def packed(kind, E, D, parts=1):
    """A random matrix (E, D) of a kind, whose scales differ."""
    rng, found = np.random.default_rng(5), []
    for _ in range(parts):
        arrays = []
        for field, shape in zip(QUANT_TYPES[kind].fields, QUANT_TYPES[kind].shapes(E // parts, D), strict=True):
            whole = rng.integers(-127, 128, shape) if field.dtype == "int8" else rng.integers(0, 256, shape)
            arrays.append((rng.uniform(0.01, 1, shape) if field.name == "scale" else whole).astype(field.dtype))
        found.append(QuantRows(QUANT_TYPES[kind], D, tuple(arrays)))
    return QuantTensor(found)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("kind", ["INT8_32", "INT4_32"])
def test_blocks_are_multiplied_as_they_are_stored(kind, parts):
    weight = packed(kind, 48, 96, parts)
    x = np.random.default_rng(6).normal(size=(5, 96)).astype(np.float32)
    bias = x[0, :48]
    wanted = naive_ops.linear(x, weight, bias)
    for precision in (None, Int8()):
        assert error(product(weight, precision, bias=bias)(x), wanted) < 0.01  # inputs are int8, in blocks
    # The order of nibbles and blocks shows where inputs are whole numbers, which blocks of 8 bits hold exactly.
    x = np.sign(x) * 127
    assert error(product(weight, None, bias=bias)(x), naive_ops.linear(x, weight, bias)) < 1e-5
    assert error(product(weight, None, standard=True, bias=bias)(x), naive_ops.linear(x, weight, bias)) < 1e-5


def test_a_table_in_int8_is_looked_up_as_it_is_stored():
    model = Words(packed("INT8", 50, 40, 2))
    graph = GraphBuilder()
    n = graph.input_dim("N", 3, "x", 0)
    ids: Any = Symbol(graph, "x", (n,), np.dtype(np.int64))
    y = as_symbols(graph, model).forward(ids)
    traced = finish(graph, [GraphInput("x", ("N",), "int64", 0, "x")], [("y", y, False)])
    assert all(stored.dtype != np.float32 or np.prod(stored.shape) <= 50 for stored in traced.constants.values())
    asked = np.array([0, 49, 7, 7])
    (found,) = Session(traced.proto().SerializeToString(), "CPUExecutionProvider")({"x": asked})
    np.testing.assert_allclose(found, naive_ops.dequantise(model.table)[asked], rtol=1e-6)


def test_large_tables_are_stored_in_int8(running, monkeypatch):
    monkeypatch.setattr(quantised, "MIN_INT8_TABLE", 1 << 10)
    model = BertModel.from_config(BertConfig(vocab_size=500, **SMALL))
    record = model.tokens(np.random.default_rng(7).integers(0, 500, (2, 9)))
    traced = trace(model.encode, record, precision=Int8())
    assert {n.inputs[0] for n in traced.nodes if n.op == "Gather"}.isdisjoint({"embeddings.word"})
    assert error(hidden(model, record, Int8(), running), model.encode(record)) < 0.02


class Boxes(NamedTuple):
    """A further kind of input: numbers for each token of a text."""

    boxes: np.ndarray  # (B, T, D)

    fields = (RecordField("boxes", "boxes", ("B", "T", "D"), "float32"),)


class BertOfPages(BertModel):
    def forward_page(self, t: TextInputs, page: Boxes) -> Any:
        """The states of tokens with numbers of their own."""
        return self.layers[0].up(self.encode(t) + page.boxes)


def test_records_that_belong_together_keep_their_lengths():
    """Random texts of 64 tokens beside boxes of 7 were an error of ONNX Runtime's."""
    config = BertConfig.from_dict({"model_type": "bert", "vocab_size": 99, **SMALL})
    model = BertOfPages.from_config(config)
    rng = np.random.default_rng(0)
    t = model.tokens(rng.integers(0, 99, (2, 7)))
    page = Boxes(rng.normal(size=(2, 7, 64)).astype(np.float32))
    found = int8(model.forward_page, t, page, exact=has_exact_sums())
    traced = trace(model.forward_page, t, page, precision=found, output="states")
    session = Session(traced.proto().SerializeToString(), "CPUExecutionProvider")
    wanted = model.forward_page(t, page)
    (states,) = session(traced.signature.feed(t, page))
    assert error(states, wanted) < 0.05
