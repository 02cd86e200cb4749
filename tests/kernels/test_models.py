"""One checkpoint of each family through the kernels, against the same model by torch's own functions on the CPU.

In float32 the two may differ by the rounding of sums: 1e-5 of the largest value.  In bfloat16 each is as far from
float32 as rounding takes it: zoo's kernels at most three times as far as torch's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_close, wide
from packed_matrices import rows

from parity.checkpoints import build
from parity.reference import exact_products
from tests.ops import naive
from zoo import ops
from zoo.engines import triton as kernels
from zoo.engines.triton import activations, attention, decode, gemv, norm, packed_dot, packed_gemv, rope, softmax
from zoo.loading import load_model
from zoo.ops import to_numpy
from zoo.quant import QuantTensor, float_tensor

# What each kernel is called by.
KERNELS = {
    "layer_norm": norm,
    "add_layer_norm": norm,
    "rms_norm": norm,
    "add_rms_norm": norm,
    "attention": attention,
    "decode_attention": decode,
    "bias_act_": activations,
    "glu": activations,
    "rope": rope,
    "rope_write_": rope,
    "gemv": gemv,
    "packed_gemv": packed_gemv,
    "packed_dot": packed_dot,
    "softmax": softmax,
}

TEXTS = np.random.default_rng(0).integers(5, 400, (2, 37))  # more than what `decode_attention` takes
MASK = np.arange(37) < np.array([[37], [21]])


def text(model: Any) -> Any:
    return model(TEXTS, MASK)


def words(model: Any) -> Any:
    """As RoBERTa's checkpoints count positions: over what is not padding."""
    return model(np.where(MASK, TEXTS, model.config.pad_token_id), MASK)


def images(model: Any) -> Any:
    Y, X = model.config.image
    return model(np.random.default_rng(1).standard_normal((2, Y, X, 3)))


def page(model: Any) -> Any:
    pixels = np.random.default_rng(2).standard_normal((2, 70, 96, 3))
    mask = np.ones((2, 70, 96), bool)
    mask[1, 40:] = False
    return model(pixels, mask)


def line(model: Any) -> Any:
    """An encoder, a prompt of two tokens in each of two rows, and three steps."""
    Y, X = model.config.encoder.image
    states = model.encode(np.random.default_rng(3).standard_normal((2, Y, X, 3)))
    cache, ids = model.new_cache(2, 9), TEXTS[:, :5]
    steps = [model.next_logits(ids[:, :2], None, cache, encoder_hidden_states=states)]
    return (*steps, *(model.next_logits(ids[:, i : i + 1], None, cache) for i in range(2, 5)))


def tokens(model: Any) -> Any:
    """Rows of unequal length, then steps; and one row alone, as a chat has it."""
    cache = model.new_cache(2, 20)
    steps = [model.next_logits(TEXTS[:, :17], np.array([17, 9]), cache)]
    steps += [model.next_logits(TEXTS[:, i : i + 1], None, cache) for i in range(2)]
    cache = model.new_cache(1, 9)
    return (*steps, *(model.next_logits(ids, None, cache) for ids in (TEXTS[:1, :4], TEXTS[:1, 4:5])))


CASES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "bert-base-uncased": (text, {"attention", "layer_norm", "bias_act_"}),
    "xlm-roberta-base": (words, {"attention", "layer_norm", "bias_act_"}),
    "vit-base-patch16-224": (images, {"layer_norm", "add_layer_norm", "bias_act_"}),
    "deit-base-distilled-patch16-224": (images, {"layer_norm", "add_layer_norm", "bias_act_"}),
    "beit-base-patch16-224": (images, {"attention", "layer_norm", "bias_act_"}),
    "table-transformer-detection": (page, {"layer_norm", "add_layer_norm", "bias_act_"}),
    "trocr-base-handwritten": (line, {"decode_attention", "layer_norm", "bias_act_"}),
    "Llama-3.2-1B": (tokens, {"attention", "decode_attention", "rms_norm", "add_rms_norm", "rope_write_", "glu"}),
    "llama-tagger": (text, {"attention", "rms_norm", "add_rms_norm", "rope", "glu"}),
}

# The others call the same kernels, and take long in the interpreter.
EACH_TIME = {
    ("bert-base-uncased", "float32"),
    ("trocr-base-handwritten", "float32"),
    ("Llama-3.2-1B", "bfloat16"),
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The kernels that were called since."""
    names: set[str] = set()

    def counted(name: str, of: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: names.add(name) or of(*args, **options)

    for name, module in KERNELS.items():
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    return names


@contextmanager
def without_kernels() -> Iterator[None]:
    """On the CPU, where they are used while they are interpreted."""
    before, kernels._interpreted = kernels._interpreted, False
    try:
        yield
    finally:
        kernels._interpreted = before


def outputs(found: Any) -> list[np.ndarray]:
    arrays = found if isinstance(found, tuple) else (found,)
    return [to_numpy(x).astype(np.float64) for x in arrays if x is not None]


def distance(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest of the outputs' relative errors in L2."""
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if (name, dtype) in EACH_TIME else pytest.mark.nightly)
        for name in CASES
        for dtype in ("float32", "bfloat16")
    ],
)
def test_a_model_through_the_kernels(name, dtype, device, called, tmp_path):
    with exact_products():  # cuDNN's own default is TF32
        compare(name, dtype, device, called, build(name, tmp_path / name, "tiny"))


def compare(name, dtype, device, called, folder):
    run, expected = CASES[name]
    on = "cuda" if device == "cuda" else "torch:cpu"
    with without_kernels():
        exact = outputs(run(load_model(folder, device="torch:cpu", dtype="float32")))
        rounded = outputs(run(load_model(folder, device="torch:cpu", dtype="bfloat16")))
    assert not called
    found = outputs(run(load_model(folder, device=on, dtype=dtype)))
    assert called >= expected
    if dtype == "bfloat16":
        assert name != "Llama-3.2-1B" or "gemv" in called
        assert distance(found, exact) <= 3 * distance(rounded, exact)
        return
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1.0, np.abs(b).max()))


@pytest.mark.nightly
def test_packed_weights_through_the_kernels(device, called, tmp_path):
    """Against the same rounded numbers, widened before each product.  int4 has a vocabulary of int8."""

    def words(model: Any) -> Any:
        cache = model.new_cache(1, 9)
        return tuple(model.next_logits(ids, None, cache) for ids in (TEXTS[:1, :4], TEXTS[:1, 4:5]))

    folder = build("Llama-3.2-1B", tmp_path / "llama", "tiny")
    on = "cuda" if device == "cuda" else "torch:cpu"
    with exact_products(), without_kernels():
        wanted = outputs(words(load_model(folder, device="torch:cpu", dtype="float32", weights="int4")))
    assert not called
    found = outputs(words(load_model(folder, device=on, dtype="float32", weights="int4")))
    assert called >= {"packed_gemv", "packed_dot"}
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1.0, np.abs(b).max()))


def _of_parts(device: str) -> tuple[QuantTensor, QuantTensor]:
    """Parts of several kinds, on a device and as NumPy has them."""
    parts = [
        *(rows(kind, 5 + i, 64, i) for i, kind in enumerate(packed_gemv.QUANT_TYPES)),
        float_tensor(np.ones((3, 64), "f4")),
    ]
    of_numpy = QuantTensor([row for part in parts for row in (part.parts if isinstance(part, QuantTensor) else [part])])
    return QuantTensor(of_numpy.map(lambda array: torch.from_numpy(array).to(device)).parts, torch.float32), of_numpy


@pytest.mark.parametrize(("tokens", "kernel"), [(1, "packed_gemv"), (7, "packed_dot"), (20, "")])
def test_a_matrix_of_several_kinds(tokens, kernel, device, called):
    weight, of_numpy = _of_parts(device)
    x = torch.randn(1, tokens, 64, device=device)
    bias, residual = torch.randn(len(weight), device=device), torch.randn(1, tokens, len(weight), device=device)
    got: Any = ops.linear(x, weight, bias, "silu", residual)
    assert_close(got, naive.linear(wide(x), of_numpy, wide(bias), "silu", wide(residual)))
    assert called - {"bias_act_"} == ({kernel} if kernel else set())


def test_a_gradient_through_packed_weights_is_not_cut(device, called):
    """Kernels have no backward: where one is wanted of x, the matrix is widened and torch multiplies."""
    weight, _ = _of_parts(device)
    for tokens in (1, 3):
        x = torch.randn(tokens, 64, device=device, requires_grad=True)
        y: Any = ops.linear(x, weight, None, "silu")
        y.sum().backward()
        assert x.grad is not None
        assert float(x.grad.abs().min()) > 0
    assert not called
