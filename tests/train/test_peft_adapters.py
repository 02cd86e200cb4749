"""Adapters are read as peft reads them; those that are damaged or do not fit are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import zoo
import zoo.lock
from zoo.apps.cli import main
from zoo.errors import CheckpointError, LockError, NotFoundError, ZooError

torch = pytest.importorskip("torch", reason="training needs torch")

from zoo.apps.train import finetune  # noqa: E402 - torch is there


@pytest.mark.parametrize("spec", ["bert-emotion", "vit-base-patch16-224"])
def test_an_adapter_that_peft_made(spec, made, tmp_path):
    """The names of ViT's modules changed with version 5 of transformers."""
    peft = pytest.importorskip("peft", reason="needs peft, whose layout it is")
    transformers = pytest.importorskip("transformers", reason="needs transformers, for peft")
    is_text = spec == "bert-emotion"
    auto = transformers.AutoModelForSequenceClassification if is_text else transformers.AutoModelForImageClassification
    base = auto.from_pretrained(made(spec)).eval()
    targets = ["query", "value"] if is_text else ["q_proj", "v_proj"]
    config = peft.LoraConfig(
        r=3,
        lora_alpha=5,
        target_modules=targets,
        use_rslora=True,
        init_lora_weights=False,
        modules_to_save=["classifier"],
    )
    theirs = peft.get_peft_model(base, config).eval()
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            if "modules_to_save" in name:
                p.add_(0.1)
    theirs.save_pretrained(tmp_path / "adapter")
    model = zoo.load_model(made(spec), adapter=tmp_path / "adapter")
    if is_text:
        ids = np.array([[5, 6, 7, 8]])
        ours, wanted = model(ids), theirs(input_ids=torch.tensor(ids)).logits
    else:
        x = np.random.default_rng(0).standard_normal((1, *model.config.image, 3)).astype(np.float32)
        ours, wanted = model(x), theirs(pixel_values=torch.tensor(x).permute(0, 3, 1, 2)).logits
    np.testing.assert_allclose(ours, wanted.detach(), atol=1e-4)
    assert np.abs(ours - zoo.load_model(made(spec))(ids if is_text else x)).max() > 0.01


def test_adapters_that_do_not_fit(made, tmp_path):
    with pytest.raises(NotFoundError, match=r"not an adapter: it has no adapter_config\.json"):
        zoo.load("stories260k", adapter=tmp_path)
    data = tmp_path / "stories.jsonl"
    data.write_text('{"text": "a story of two"}\n' * 2)
    out = finetune("stories260k", data, tmp_path / "adapter", steps=1, lora=2, device="torch:cpu")
    with pytest.raises(CheckpointError, match=r"adapter of another model: the checkpoint has no '.*q_proj\.weight'"):
        zoo.load_model(made("bert-emotion"), adapter=out)
    config = json.loads((out / "adapter_config.json").read_text())
    (out / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(CheckpointError, match="has no magnitude, but use_dora = True"):
        zoo.load("stories260k", adapter=out)


QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"


def adapter_in(folder, tensors=None, **fields):
    """The folder of a small adapter for BERT's first query."""
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "target_modules": ["query"]}
    (folder / "adapter_config.json").write_text(json.dumps({**config, **fields}))
    size = 48
    pair = {"A": np.ones((2, size), np.float32), "B": np.full((size, 2), 0.01, np.float32)}
    save_file(tensors or {f"{QUERY}.lora_{k}.weight": v for k, v in pair.items()}, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lora_alpha": 1e308}, "has NaN or infinity with the adapter"),
        ({"lora_alpha": float("nan")}, "NaN is not a JSON number"),
        ({"lora_alpha": "4"}, "expected numbers"),
        ({"r": 0}, "expected numbers"),
        ({"labels": '{"x": "a"}'}, "a key that is not an integer"),
        ({"labels": '{"0": "a", "2": "b"}'}, "must name every index"),
        ({"labels": '{"0": "a", "1": null}'}, "None is not a text"),
    ],
)
def test_adapters_that_are_damaged(fields, message, made, tmp_path):
    labels = fields.pop("labels", None)
    folder = adapter_in(tmp_path / "adapter", **fields)
    if labels is not None:
        (folder / "id2label.json").write_text(labels)
    with pytest.raises(ZooError, match=message):
        zoo.load(made("bert-emotion"), adapter=folder)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(2, np.float32), None, "of shape \\(2,\\), expected a matrix"),
        (np.ones((2, 48, 1), np.float32), None, "does not fit"),
        (np.ones((2, 48), np.int64), None, "is I64 of shape"),
        (np.ones((2, 47), np.float32), None, "does not fit"),
        (np.full((2, 48), np.nan, np.float32), None, "has NaN or infinity with the adapter"),
        (np.ones((2, 48), np.float32), "twice", "are the same matrix"),
    ],
)
def test_adapters_whose_matrices_are_none(a, b, message, made, tmp_path):
    tensors = {f"{QUERY}.lora_A.weight": a, f"{QUERY}.lora_B.weight": np.ones((48, 2), np.float32)}
    if b == "twice":
        tensors[f"{QUERY}.lora_A.default.weight"] = a
    with pytest.raises(CheckpointError, match=message):
        zoo.load(made("bert-emotion"), adapter=adapter_in(tmp_path / "adapter", tensors))


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors", "id2label.json"])
def test_no_link_is_followed_out_of_an_adapter(name, made, tmp_path):
    folder = adapter_in(tmp_path / "adapter")
    (folder / "id2label.json").write_text("{}")
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(CheckpointError, match="a link out of its folder"):
        zoo.load(made("bert-emotion"), adapter=folder)


def test_a_lock_covers_adapters(made, tmp_path):
    base, folder, path = made("bert-emotion"), adapter_in(tmp_path / "adapter"), tmp_path / "zoo.lock"
    zoo.lock.lock([base], path)
    with pytest.raises(LockError, match=r"has no .*adapter"):
        zoo.load(base, adapter=folder, lock=path)
    assert main(["lock", str(folder), "-o", str(path)]) == 0
    locked = zoo.load(base, adapter=folder, lock=path)
    assert locked("a text") == zoo.load(base, adapter=folder)("a text")
    assert zoo.lock.check(path) == {str(base): [], str(folder): []}
    (folder / "id2label.json").write_text("{}")
    with pytest.raises(LockError, match="would be loaded, and the lock does not name it"):
        zoo.load(base, adapter=folder, lock=path)
    (folder / "id2label.json").unlink()
    adapter_in(folder, lora_alpha=5)
    with pytest.raises(LockError, match=r"adapter_config\.json has sha256"):
        zoo.load(base, adapter=folder, lock=path)
