"""Every task by ONNX Runtime, against the same task on NumPy; and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.specs import SPECS
from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.errors import UnsupportedError

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

LINES = ["Anna went to Rome.", "So did the boy who sat in front of her, who had never been so far from home."]
SOUND = np.random.default_rng(0).uniform(-0.1, 0.1, 20_000).astype(np.float32)
IMAGE = np.random.default_rng(0).integers(0, 255, (60, 90, 3), np.uint8)


def shares(image, *found):
    """Boxes as shares of the image's longer side: rounding grows with the pixels."""
    side = max(image.shape)
    return [[(one.label, one.score, [v / side for v in one.box]) for one in objects] for objects in found]


TASKS = {
    "embed": ("all-MiniLM-L6-v2", lambda task: task(LINES)),
    "fill-mask": ("bert-base-uncased", lambda task: task(["the [MASK] sat", "[MASK] and [MASK] went"])),
    "classify": ("bert-emotion", lambda task: task(LINES)),
    "tag": ("bert-base-NER", lambda task: task(LINES)),
    "answer": ("bert-base-squad2", lambda task: task("who went to rome ?", LINES[0])),
    "rerank": ("ms-marco-MiniLM-L6-v2", lambda task: task("rome", LINES)),
    "classify images": ("vit-base-patch16-224", lambda task: task([IMAGE, IMAGE[:, ::-1]])),
    "embed images": ("beit-cls-token", lambda task: task([IMAGE, IMAGE[:, ::-1]])),
    "segment": ("beit-base-finetuned-ade-640-640", lambda task: (lambda one: (one.mask, one.labels))(task(IMAGE))),
    "detect": ("table-transformer-detection", lambda task: [shares(IMAGE, *task([IMAGE, IMAGE[:50]], threshold=0.0))]),
    "keypoint-detection": (
        "vitpose-plus-base",
        lambda task: [[k.score for k in task(IMAGE, boxes=[[3, 4, 30, 40]], dataset_index=2)[0].keypoints]],
    ),
    "read": ("trocr-small-printed", lambda task: task([IMAGE], max_new_tokens=8, num_beams=2)),
    "zero-shot-audio-classification": ("clap-htsat-fused", lambda task: task([SOUND, SOUND[:9000]], "cat, water")),
    "zero-shot-image-classification": ("clip-vit-base-patch32", lambda task: task([IMAGE, IMAGE[:50]], "cat, water")),
    "zero-shot-object-detection": (
        "owlv2-base-patch16-ensemble",
        lambda task: [shares(IMAGE, *task([IMAGE, IMAGE[:50]], "cat, water", threshold=0.0))],
    ),
    "zero-shot-image-segmentation": ("clipseg-rd64", lambda task: [task(IMAGE, "cat, water").logits]),
    "translation": ("flan-t5-small", lambda task: task([LINES[0], "no"], max_new_tokens=6, num_beams=2)),
    "generate": ("stories260k", lambda task: task(["Once upon a time", "Hi"], max_new_tokens=20, details=True)),
}


def written(spec, folder):
    """The folder of a random checkpoint."""
    if SPECS[spec].format not in ("safetensors", "sharded"):
        pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    return build(spec, folder)


@pytest.fixture
def checkpoint(tmp_path):
    return lambda spec: spec if spec in EMBEDDED_NAMES else written(spec, tmp_path / spec)


def assert_close(a, b):
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)
    elif isinstance(a, (float, np.ndarray)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)
    elif isinstance(a, dict):
        assert_close(list(a.items()), list(b.items()))
    else:
        assert a == b


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_what_it_is_on_numpy(name, checkpoint):
    spec, call = TASKS[name]
    folder, task = checkpoint(spec), name.removesuffix(" images")
    found = zoo.load(folder, task=task, device="onnx")
    result = call(found)
    assert len(found.runner) > 0
    assert_close(result, call(zoo.load(folder, task=task)))


def test_a_model_alone(checkpoint):
    folder = checkpoint("bert-base-squad2")
    model, wanted = (zoo.load_model(folder, device=device) for device in ("onnx", None))
    ids = np.arange(12).reshape(2, 6)
    a, b = model(ids, ids > 2), wanted(ids, ids > 2)
    assert_close(a, b)
    with pytest.raises(zoo.ZooError, match="input_ids"):  # the door is the same
        model(ids + 10**6)


@pytest.mark.parametrize(
    "options",
    [{"num_beams": 3}, {"num_return_sequences": 2, "do_sample": True, "seed": 1}, {"stop_strings": ["."]}],
    ids=str,
)
def test_texts_are_written_in_every_way(options):
    a, b = (zoo.load("stories260k", device=device) for device in ("onnx", None))
    texts = ["Once upon a time there was a little girl", "The dog"]
    assert a(texts, max_new_tokens=80, **options) == b(texts, max_new_tokens=80, **options)
    assert a.perplexity(texts) == pytest.approx(b.perplexity(texts), rel=1e-5)


def test_a_long_prompt_passes_in_parts(monkeypatch):
    import zoo.engines.onnx.decoder

    monkeypatch.setattr(zoo.engines.onnx.decoder, "CHUNK", 5)
    a, b = (zoo.load("stories260k", device=device) for device in ("onnx", None))
    texts = ["Once upon a time there was a little girl named Lily", "The", "She went to the park"]
    assert_close(a(texts, max_new_tokens=9, details=True), b(texts, max_new_tokens=9, details=True))


def test_a_cache_serves_steps_and_calls_alike(checkpoint):
    model = zoo.load_model(checkpoint("Llama-3.2-1B"), device="onnx")
    ids, cache = np.arange(5, 11)[None], model.new_cache(1, 20)
    steps = model.runner.decoder(model)
    steps.next_logits(ids[:, :3], None, cache)
    found = model(ids[:, 3:5], cache=cache)  # logits of all tokens: the model itself, on the same cache
    last = steps.next_logits(ids[:, 5:], None, cache)
    wanted = model(ids)
    assert_close(found, wanted[:, 3:5])
    assert_close(last, wanted[:, 5])


def test_what_a_graph_assumes_of_lengths_makes_another_graph(checkpoint):
    model, wanted = (zoo.load_model(checkpoint("llama-dynamic"), device=device) for device in ("onnx", None))
    for T in (5, 90, 91):
        ids = np.arange(T)[None]
        assert_close(model(ids), wanted(ids))


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (
            "onnx:cuda",
            r"has no CUDAExecutionProvider, only .*onnx:cpu \(CPUExecutionProvider\); install onnxruntime-gpu",
        ),
        ("onnx:cdua", r"no provider 'cdua', only .*did you mean 'cuda'"),
        ("onnx:", "expected a provider after"),
    ],
)
def test_a_provider_that_is_not_there(device, message, minilm):
    with pytest.raises(UnsupportedError, match=message):
        zoo.load(minilm, device=device)


def test_onnx_runtime_is_missing(monkeypatch, minilm):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UnsupportedError, match=r"needs ONNX Runtime, .* pip install 'transformers-zoo\[onnx\]'"):
        zoo.load(minilm, device="onnx")


def test_another_dtype_than_float32(minilm):
    with pytest.raises(UnsupportedError, match="computes in float32, and dtype is 'float64'"):
        zoo.load(minilm, device="onnx", dtype="float64")
