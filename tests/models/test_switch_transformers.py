"""Switch Transformers: which tokens an expert takes, the layers that have experts, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.specs import SPECS, config_of
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.switch_transformers import SwitchTransformersConfig, SwitchTransformersEncoderModel

RAW = config_of(SPECS["switch-bare"], "tiny")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return build("switch-encoder", tmp_path_factory.mktemp("switch"))


def test_an_expert_takes_the_first_tokens_of_each_text(encoder, rng):
    """Token by token, in the order of the text: those that come when their expert is full pass none."""
    experts = zoo.load_model(encoder, device="cpu", dtype="float32").layers[1].mlp.mlp
    x = rng.standard_normal((3, 20, 48)).astype(np.float32)
    wanted, taken = np.zeros_like(x), np.zeros((3, len(experts.experts)), int)
    for b, t in np.ndindex(3, 20):
        logits = experts.router(x[b : b + 1, t])[0].astype(np.float64)
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        best = int(shares.argmax())
        taken[b, best] += 1
        if taken[b, best] <= experts.capacity:
            wanted[b, t] = shares[best] * experts.experts[best](x[b : b + 1, t])[0]
    assert experts.capacity == 3 < taken.max()
    np.testing.assert_allclose(experts(x), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "torch:cpu", "onnx"])
def test_padding_takes_no_place_of_a_text(encoder, device, rng):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    pytest.importorskip("torch", reason="needs torch, for device='torch:cpu'")
    model = zoo.load_model(encoder, device=device, dtype="float32")
    ids, mask = rng.integers(3, 500, (3, 20)), np.arange(20) < np.array([[20], [13], [7]])
    together = np.asarray(model(ids, mask).last_hidden_state)
    for row, one, length in zip(together, ids, (20, 13, 7), strict=True):
        alone = np.asarray(model(one[None, :length]).last_hidden_state)[0]
        np.testing.assert_allclose(row[:length], alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "layers"),
    [
        ({}, [1, 3]),
        ({"encoder_sparse_step": 1}, [0, 1, 2, 3]),
        ({"num_sparse_encoder_layers": 1}, [1]),
        ({"num_sparse_encoder_layers": 0}, [1]),
        ({"num_sparse_encoder_layers": 9}, []),
        ({"num_hidden_layers": 3}, [1]),
        ({"encoder_sparse_step": 3}, [1]),
    ],
)
def test_layers_with_experts(values, layers):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw = {name: x for name, x in RAW.items() if not name.endswith("_step")} | values
    cfg = SwitchTransformersConfig.from_dict(raw)
    theirs = transformers.SwitchTransformersConfig(**raw)
    model = transformers.SwitchTransformersEncoderModel(theirs)
    assert [i for i, one in enumerate(model.encoder.block) if one.is_sparse] == layers
    assert [i for i in range(cfg.num_layers) if cfg.has_experts(i, in_decoder=False)] == layers


def test_texts_are_written_as_by_transformers(tmp_path):
    """With an encoder whose experts are full; in steps of one token a decoder's never are."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build("switch-base-8", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "expert_capacity": 2}))
    task, texts = zoo.load(folder, device="cpu", dtype="float32"), ["the old town by the water", "who was it ? no"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.SwitchTransformersForConditionalGeneration.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"), max_new_tokens=9, do_sample=False)
    wanted = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    assert task(texts, max_new_tokens=9) == wanted


@pytest.mark.parametrize(
    ("values", "error", "problem"),
    [
        ({"router_dtype": "bfloat16"}, UnsupportedError, "router_dtype = 'bfloat16'"),
        ({"expert_capacity": 0}, ConfigError, "expert_capacity = 0"),
        ({"num_experts": -1}, ConfigError, "num_experts = -1"),
        ({"num_sparse_decoder_layers": -2}, ConfigError, "num_sparse_decoder_layers = -2"),
        ({"encoder_sparse_step": 1.5}, ConfigError, "encoder_sparse_step"),
    ],
)
def test_configs_that_are_refused(values, error, problem):
    with pytest.raises(error, match=problem):
        SwitchTransformersEncoderModel.from_config(SwitchTransformersConfig.from_dict({**RAW, **values}))
