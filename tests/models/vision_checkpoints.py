"""Checkpoints that transformers wrote, and what it makes of an image: shared by the tests of the vision models."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, the reference")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 24,
    "patch_size": 4,
    "num_labels": 7,
}
DEVICES = ["cpu", "torch:cpu"]


def reference(name, folder, small=SMALL, **config):
    """A random model of transformers, saved in `folder`; biases, norms and statistics away from 0 and 1.

    small: the values of its config, before `config`.
    """
    torch.manual_seed(0)
    family = name.split("For")[0].removesuffix("Model").removesuffix("Backbone")
    config = getattr(transformers, family + "Config")(**{**small, **config}, attn_implementation="eager")
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer.add_(torch.randn_like(buffer) * 0.1)
            if key.endswith("running_var"):
                buffer.mul_(torch.rand_like(buffer) + 0.5)
    model.save_pretrained(folder)
    return model


def pixels(rng, height=24, width=24, batch=2, channels=3):
    return rng.standard_normal((batch, height, width, channels)).astype(np.float32)


def run(model, x, *args, **options):
    """The outputs of transformers for an image (B, Y, X, C), by name; images among them with channels last."""
    args = [None if a is None else torch.from_numpy(a) for a in args]
    with torch.no_grad():
        found = model(torch.from_numpy(x).permute(0, 3, 1, 2).to(model.dtype), *args, **options)
    return {k: _last(v) for k, v in found.items() if v is not None and k != "loss"}


def _last(value):
    if isinstance(value, (tuple, list)):
        return [_last(v) for v in value]
    return value.permute(0, 2, 3, 1) if value.ndim == 4 else value


def assert_close(found, wanted, tolerance=2e-5):
    """Within float32 rounding of a few layers: 2e-5 of the largest value, where norms keep values near one."""
    if hasattr(found, "_asdict"):
        found = {k: v for k, v in found._asdict().items() if v is not None}
        assert found.keys() <= wanted.keys()
    else:
        (key,) = wanted.keys() - {"hidden_states", "attentions"}
        found = {key: found}
    for key, value in found.items():
        pairs = [(value, wanted[key])] if not isinstance(value, tuple) else list(zip(value, wanted[key], strict=True))
        for a, b in pairs:
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            assert a.shape == b.shape, key
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max(), err_msg=key)


def rename(folder, names):
    """Write the weights in `folder` again, each under names(its name)."""
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    save_file({names(k): v for k, v in load_file(path).items()}, path, {"format": "pt"})


def as_in_memory(model, folder):
    """Write the weights in `folder` again under the names that they have in transformers' memory."""
    from safetensors.torch import save_file

    tensors = {k: v.contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def edit_config(folder, remove=(), **fields):
    path = folder / "config.json"
    found = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in found.items() if name not in remove}))
