"""trainable=True: which tensors learn, that nothing goes stale, and what a trained model is saved as."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import zoo
from parity.reference import Reference
from zoo import ops
from zoo.errors import CheckpointError, InputError, MissingWeightError, UnsupportedError

torch = pytest.importorskip("torch", reason="gradients are torch's")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from zoo.engines import triton as kernels  # noqa: E402 - torch is there

IDS = np.array([[5, 7, 8, 9, 6], [5, 11, 6, 7, 8]])
IMAGES = "pixel_values"
# One of each family, and of each way to be other than its weights: folded, gathered, resized, fused, tied.
SPECS = [
    "bert-base-uncased",
    "roberta-base",
    "vit-base-patch16-224",
    "deit-classifier",
    "beit-base-patch16-224",
    "beit-base-finetuned-ade-640-640",
    "trocr-small-printed",
    "table-transformer-detection",
    "table-transformer-learned-positions",
    "Llama-3.2-1B",
]


def inputs_of(model, more=0):
    """more: by how many patches images are wider than the model's own."""
    config = getattr(model.config, "encoder", model.config)
    if not hasattr(config, "num_channels"):
        return {"input_ids": IDS}
    height, width = getattr(config, "image", (64, 64))
    shape = (2, height, width + more, config.num_channels)
    found = {IMAGES: np.random.default_rng(more).standard_normal(shape).astype(np.float32)}
    return found if config is model.config else {**found, "decoder_input_ids": IDS}


def arrays(output):
    if hasattr(output, "shape"):
        return [output]
    return [x for part in output if part is not None for x in arrays(part)]


def total(output):
    return sum((x * torch.linspace(0.5, 1.5, x.shape[-1])).square().mean() for x in arrays(output))


def step(model, rate=0.003):
    loss = total(model(**inputs_of(model)))
    loss.backward()
    learned = [p for p in model.parameters() if p.grad is not None]  # all, but a second head of a segmentation
    norm = torch.stack([p.grad.norm() for p in learned]).norm()
    with torch.no_grad():
        for p in learned:
            p -= rate * p.grad / norm
            p.grad = None
    return float(loss.detach())


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_trained_is_what_is_saved_and_nothing_of_before_stays(spec, made, tmp_path):
    model = zoo.load_model(made(spec), device="torch:cpu", trainable=True)
    with torch.no_grad():
        before = arrays(model(**inputs_of(model)))  # from here on whatever is kept would be stale
    losses = [step(model) for _ in range(2)]
    assert losses[1] < losses[0]
    with torch.no_grad():
        after = arrays(model(**inputs_of(model)))
    assert all(not torch.allclose(a, b, atol=1e-6) for a, b in zip(before, after, strict=True))
    zoo.save(model, tmp_path / "saved", dtype="float32")
    for device in (None, "torch:cpu"):
        again = arrays(zoo.load_model(tmp_path / "saved", device=device)(**inputs_of(model)))
        for a, b in zip(after, again, strict=True):
            np.testing.assert_allclose(ops.to_numpy(a), ops.to_numpy(b), rtol=0, atol=3e-5 * float(a.abs().max()))


@pytest.mark.parametrize("spec", SPECS)
def test_transformers_loads_what_was_trained(spec, made, tmp_path):
    model = zoo.load_model(made(spec), device="torch:cpu", trainable=True)
    step(model)
    zoo.save(model, tmp_path, dtype="float32")
    reference = Reference(tmp_path, type(model).__name__)
    theirs = reference.stages(inputs_of(model))
    with torch.no_grad():
        ours = arrays(model(**inputs_of(model)))
    name = next(n for n in ("logits", "prediction_logits") if n in theirs)
    np.testing.assert_allclose(ours[0], theirs[name], rtol=0, atol=5e-5 * np.abs(theirs[name]).max())


def test_parameters_have_the_names_of_the_checkpoint(made):
    model = zoo.load_model(made("bert-base-uncased"), device="torch:cpu", trainable=True)
    from safetensors import safe_open

    named = dict(model.named_parameters())
    with safe_open(made("bert-base-uncased") / "model.safetensors", "np") as file:
        known = set(file.keys())
    assert named.keys() <= known | {"cls.predictions.decoder.weight"}
    assert sum(name.endswith(("query.weight", "key.weight", "value.weight")) for name in named) == 9
    assert all(p.is_leaf and p.requires_grad and p.dtype == torch.float32 for p in named.values())
    assert len({id(p) for p in model.parameters()}) == len(named)  # tied embeddings come once


def test_sixteen_bits_are_trained_in_float32_and_saved_as_they_were(made, tmp_path):
    model = zoo.load_model(made("Llama-3.1-8B-float16"), device="torch:cpu", trainable=True)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    zoo.save(model, tmp_path)
    assert zoo.load_model(tmp_path, device="torch:cpu").like.dtype == torch.float16


def test_no_kernel_cuts_a_gradient(made, monkeypatch):
    """Planted: kernels that say they run on the CPU.  They have no backward, and must not be asked."""
    monkeypatch.setattr(kernels, "_interpreted", True)
    x, w = torch.ones(2, 4), torch.ones(4, requires_grad=True)
    assert kernels.usable(x)
    assert not kernels.usable(x, w)
    assert not kernels.usable(w, None)
    with torch.no_grad():
        assert kernels.usable(x, w)
    for spec in ("bert-base-uncased", "vit-base-patch16-224", "Llama-3.2-1B", "table-transformer-detection"):
        model = zoo.load_model(made(spec), device="torch:cpu", trainable=True)
        total(model(**inputs_of(model))).backward()
        assert all(p.grad is not None for p in model.parameters()), spec


def test_a_frozen_body_still_trains_its_head(made, monkeypatch):
    """The head's inputs want no gradient, its weights do."""
    monkeypatch.setattr(kernels, "_interpreted", True)
    model = zoo.load_model(made("bert-emotion"), device="torch:cpu", trainable=True)
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith("classifier"))
    with monkeypatch.context() as patch:  # what is frozen is computed by kernels, which need a GPU
        patch.setattr(kernels, "_interpreted", False)
        states = model.base_model.forward(model.tokens(IDS)).pooler_output
    model.classifier(states).square().mean().backward()
    assert all((p.grad is not None) == name.startswith("classifier") for name, p in model.named_parameters())


def test_a_row_that_sees_nothing_poisons_no_gradient(made):
    model = zoo.load_model(made("bert-base-NER"), device="torch:cpu", trainable=True)
    mask = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    model(IDS, mask)[0].square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def masks(monkeypatch):
    """Dropout that follows from the shape alone, so that two programs can be compared where they drop."""

    def drop(x, p=0.5, training=True, inplace=False):
        if not training or p == 0:
            return x
        keep = (torch.arange(x.numel()).reshape(x.shape) * 7919 % 101) / 101 >= p
        return x * keep / (1 - p)

    def attend(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if enable_gqa:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            is_bool = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, -1e30) if is_bool else scores + attn_mask
        return drop(scores.softmax(-1), dropout_p) @ v

    monkeypatch.setattr(torch.nn.functional, "dropout", drop)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attend)


RATES = {
    **dict.fromkeys(("hidden_dropout_prob", "classifier_dropout"), 0.3),
    **dict.fromkeys(("dropout", "activation_dropout"), 0.4),
    **dict.fromkeys(("attention_probs_dropout_prob", "attention_dropout"), 0.2),
    "drop_path_rate": 0.0,  # which transformers draws by itself
}


@pytest.mark.parametrize(
    "spec", [*SPECS, "bert-emotion", "bert-base-NER", "llama-tagger", "roberta-swag", "trocr-decoder"]
)
def test_dropout_drops_where_that_of_transformers_does(spec, made, tmp_path, monkeypatch):
    folder = shutil.copytree(made(spec), tmp_path / "rates")
    config = json.loads((folder / "config.json").read_text())
    for part in (config, config.get("encoder", {}), config.get("decoder", {})):
        part.update(RATES)
    (folder / "config.json").write_text(json.dumps(config))
    model = zoo.load_model(folder, device="torch:cpu", trainable=True)
    reference = Reference(folder, type(model).__name__)
    for module in reference.model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.1
    inputs = inputs_of(model)
    if spec == "roberta-swag":
        inputs = {"input_ids": IDS[None]}
    masks(monkeypatch)
    model.train()
    reference.model.train()
    options = {name: reference._tensor(x) for name, x in inputs.items()}
    if IMAGES in options:
        options[IMAGES] = options[IMAGES].permute(0, 3, 1, 2)
    with torch.no_grad():
        theirs = reference.model(**options).logits
        ours = arrays(model(**inputs))[0]
        assert not torch.allclose(ours, arrays(model.eval()(**inputs))[0], atol=1e-3)  # something was dropped
    theirs = theirs.permute(0, 2, 3, 1) if theirs.ndim == 4 else theirs
    torch.testing.assert_close(ours, theirs, rtol=0, atol=5e-5 * float(theirs.abs().max()))
    statistics = {n: b for n, b in reference.model.named_buffers() if n.endswith(("running_mean", "running_var"))}
    if spec.startswith("beit-base-finetuned"):  # which learned from that batch, on both sides
        own = model.state_dict()
        name = "decode_head.fpn_convs.0.bn.running_var"
        its = next(b for n, b in statistics.items() if "fpn_convs.0" in n and n.endswith("running_var"))
        torch.testing.assert_close(own[name], its)


def test_stochastic_depth_drops_images_whole(made):
    model = zoo.load_model(made("beit-base-patch16-224"), device="torch:cpu", trainable=True).train()
    drop = model.base_model.layers[-1].drop_path
    assert drop.rate == model.config.drop_path_rate
    drop.set_rate = 0.5
    y = drop(torch.ones(400, 3, 2))
    per_image = y.reshape(400, -1)
    assert ((per_image == 0).all(1) | (per_image == 2).all(1)).all()
    assert 120 < int((per_image[:, 0] == 0).sum()) < 280


def test_norms_that_transformers_freezes_stay(made):
    model = zoo.load_model(made("table-transformer-detection"), device="torch:cpu", trainable=True).train()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    assert not any(".bn" in name for name, _ in model.named_parameters())
    step(model)
    after = model.state_dict()
    assert all(torch.equal(after[name], x) for name, x in before.items() if ".bn" in name or "downsample.1" in name)
    learned = "model.backbone.conv_encoder.model.conv1.weight"
    assert not torch.equal(after[learned], before[learned])


def test_a_task_of_a_model_in_training_computes_as_it_will_be_used(made):
    classify = zoo.load(made("bert-emotion"), device="torch:cpu", trainable=True)
    wanted = classify("a text")
    classify.model.train()
    assert classify("a text") == wanted
    assert classify.model.base_model.embeddings.dropout.is_training  # and goes on training
    write = zoo.load("stories260k", device="torch:cpu", trainable=True)
    assert write("Once", max_new_tokens=9) == zoo.load("stories260k")("Once", max_new_tokens=9)
    read = zoo.load(made("trocr-small-printed"), device="torch:cpu", trainable=True)
    read.model.train()
    used = zoo.load(made("trocr-small-printed"))
    for image in (
        np.full((24, 60, 3), 200, np.uint8),
        np.random.default_rng(0).integers(0, 255, (24, 60, 3), np.uint8),
    ):
        found, wanted = (reader(image, max_new_tokens=3) for reader in (read, used))
        assert found.text == wanted.text
        assert found.confidence == pytest.approx(wanted.confidence, rel=1e-3)
    assert read.model.decoder.base_model.embeddings.dropout.is_training


def test_a_head_that_the_checkpoint_lacks(made, tmp_path):
    with pytest.raises(MissingWeightError, match=r"classifier\.weight"):
        zoo.load_model(made("bert-base-uncased"), head="ForSequenceClassification", device="torch:cpu")
    options = {"head": "ForSequenceClassification", "device": "torch:cpu", "trainable": True}
    names = ["no", "maybe", "yes"]
    with pytest.warns(UserWarning, match=r"no .*classifier\.weight.*drawn at random"):
        model = zoo.load_model(made("bert-base-uncased"), id2label=names, **options)
    drawn = dict(model.named_parameters())
    assert {"classifier.weight", "classifier.bias"} <= set(model.report.new)
    assert drawn["classifier.weight"].shape == (3, model.config.hidden_size)
    assert 0.015 < float(drawn["classifier.weight"].detach().std()) < 0.025  # initializer_range
    assert not drawn["classifier.bias"].detach().any()
    with pytest.warns(UserWarning, match="drawn at random"):
        again, other = (zoo.load_model(made("bert-base-uncased"), num_labels=3, seed=s, **options) for s in (0, 1))
    weight = [m.state_dict()["classifier.weight"] for m in (model, again, other)]
    assert torch.equal(weight[0], weight[1])
    assert not torch.equal(weight[0], weight[2])
    zoo.save(model, tmp_path)
    saved = zoo.load_model(tmp_path)
    assert saved.config.id2label == dict(enumerate(names))
    np.testing.assert_allclose(saved(IDS), model(IDS).detach(), atol=1e-5)
    assert Reference(tmp_path, "BertForSequenceClassification").model.config.num_labels == 3


def test_a_head_for_other_labels_and_what_of_it_stays(made):
    with pytest.warns(UserWarning, match="drawn at random"):
        task = zoo.load(made("twitter-roberta-base-sentiment"), device="torch:cpu", trainable=True, num_labels=7)
    assert len(task("a text")) == 7
    assert set(task.report.new) == {"classifier.out_proj.weight", "classifier.out_proj.bias"}  # its dense layer fits


def test_a_state_goes_back_where_it_came_from(made):
    model = zoo.load_model(made("bert-emotion"), device="torch:cpu", trainable=True)
    state = {name: x.clone() for name, x in model.state_dict().items()}
    with torch.no_grad():
        wanted = model(IDS)
    step(model)
    model.load_state_dict(state)
    with torch.no_grad():
        assert torch.equal(model(IDS), wanted)
    with pytest.raises(CheckpointError, match=r"has no tensor 'classifier\.bias'"):
        model.load_state_dict({name: x for name, x in state.items() if name != "classifier.bias"})
    with pytest.raises(CheckpointError, match=r"does not know, 'classifier\.bia'.*mean 'classifier\.bias'"):
        model.load_state_dict({**state, "classifier.bia": torch.ones(1)})
    with pytest.raises(CheckpointError, match=r"'classifier\.bias' has shape \(1,\)"):
        model.load_state_dict({**state, "classifier.bias": torch.ones(1)})


@pytest.mark.parametrize("device", [None, "cpu", "onnx"])
def test_gradients_want_torch(device, made):
    with pytest.raises(UnsupportedError, match=r"trainable=True needs gradients.*'torch:cpu'"):
        zoo.load_model(made("bert-emotion"), device=device, trainable=True)


def test_a_model_that_was_loaded_to_be_used(made):
    model = zoo.load_model(made("bert-emotion"), device="torch:cpu")
    for method in (model.parameters, model.state_dict, model.train):
        with pytest.raises(UnsupportedError, match="load it with trainable=True"):
            list(method())
    assert not model(IDS).requires_grad


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_labels": 0}, "num_labels is 0"),
        ({"num_labels": True}, "num_labels is True"),
        ({"num_labels": 3, "id2label": ["a"]}, "num_labels is 3, and id2label names 1"),
        ({"id2label": {1: "a"}}, "every index 0 ... 0 once"),
        ({"id2label": []}, "every index"),
    ],
)
def test_labels_that_are_none(options, message, made):
    with pytest.raises(InputError, match=message):
        zoo.load_model(made("bert-emotion"), device="torch:cpu", trainable=True, **options)
