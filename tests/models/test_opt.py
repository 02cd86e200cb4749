"""OPT: positions by the mask, texts as transformers writes them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import InputError, UnsupportedError
from zoo.generate import GenerationConfig, generate
from zoo.models.opt import OPTConfig


@pytest.fixture(scope="module", params=["opt-125m", "opt-350m"])
def folder(request, tmp_path_factory):
    return build(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_masked_rows_and_texts_are_those_of_transformers(folder, device):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    theirs = transformers.OPTForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids, mask = np.arange(20, 34).reshape(2, 7), np.array([[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])
    ours: Any = zoo.load_model(folder, device=device, dtype="float32")
    with torch.no_grad():
        wanted = theirs(torch.tensor(ids), attention_mask=torch.tensor(mask)).logits
        texts = theirs.generate(torch.tensor(ids[:1]), max_new_tokens=12, do_sample=False, eos_token_id=499)[0, 7:]
    found = ours(ids, mask)
    np.testing.assert_allclose(np.asarray(found)[mask > 0], wanted.numpy()[mask > 0], atol=1e-4)
    written = generate(ours, ids[:1], GenerationConfig(max_new_tokens=12, eos_token_id=(499,)))
    assert written[0][0].ids.tolist() == texts.tolist()


def test_a_mask_beside_a_cache_is_refused(folder):
    model: Any = zoo.load_model(folder)
    with pytest.raises(InputError, match="with a cache pass none"):
        model(np.array([[5, 6]]), np.array([[0, 1]]), cache=model.new_cache(1, 8))


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="opt: layer_norm_elementwise_affine = False"):
        OPTConfig.from_dict({"layer_norm_elementwise_affine": False})
    with pytest.raises(UnsupportedError, match="_remove_final_layer_norm = True"):
        OPTConfig.from_dict({"_remove_final_layer_norm": True})
