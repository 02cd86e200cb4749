"""entity-classification: LUKE's inputs and results beside transformers', and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.specs import SPECS
from zoo.errors import BatchError, InputError, TokenizerError

transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
torch = pytest.importorskip("torch", reason="needs torch, the reference")

TEXT = "Ada Lovelace met Bob  in New York."
ADA, BOB, YORK, WORDS = (0, 12), (17, 20), (25, 33), [(0, 3), (0, 12), (4, 12), (13, 16), (17, 20), (22, 34)]
KINDS = {  # checkpoint: the task of its tokenizer, and spans of two texts
    "luke-large-finetuned-open-entity": ("entity_classification", [[ADA], [(0, 2)]]),
    "luke-large-finetuned-tacred": ("entity_pair_classification", [[ADA, YORK], [(6, 9), (0, 2)]]),
    "luke-large-finetuned-conll-2003": ("entity_span_classification", [WORDS, [(0, 2), (3, 5)]]),
}
TEXTS = [TEXT, "He is Bob"]


def reference(path, kind, texts, spans):
    """transformers' inputs for texts, and the logits of each."""
    tokenizer = transformers.LukeTokenizer.from_pretrained(path, task=kind)
    given = tokenizer(texts, entity_spans=spans, padding=True, return_tensors="pt")
    model = getattr(transformers, SPECS[path.name].architecture).from_pretrained(path, attn_implementation="eager")
    with torch.no_grad():
        return given, model.eval()(**given).logits.numpy()


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("device", ["cpu", "onnx"])
def test_inputs_and_results_are_those_of_transformers(name, device, tmp_path):
    if device == "onnx":
        pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    path, (kind, spans) = build(name, tmp_path / name), KINDS[name]
    task: Any = zoo.load(path, device=device)
    given, logits = reference(path, kind, TEXTS, spans)
    rows = [task.marker.row(text, own, task.marks) for text, own in zip(TEXTS, spans, strict=True)]
    ids, more = task.marker.batch(rows, task.model.needs_spans)
    arrays = {"input_ids": ids, **more}
    most = arrays["entity_position_ids"].shape[2]
    assert (given["entity_position_ids"][..., most:] == -1).all()
    assert arrays.keys() == given.keys()
    for key, array in arrays.items():
        wanted = given[key].numpy()
        np.testing.assert_array_equal(array, wanted[..., :most] if key == "entity_position_ids" else wanted)
    found, names = task(TEXTS, spans), task.config.id2label
    for one, own, row in zip(found, spans, softmax(logits), strict=True):
        if task.marks:
            assert [x.label for x in one] == [names[i] for i in np.argsort(-row)]
            np.testing.assert_allclose([x.score for x in one], np.sort(row)[::-1], rtol=1e-4)
        else:
            assert [(x.start, x.end) for x in one] == own
            assert [x.label for x in one] == [names[i] for i in row[: len(own)].argmax(-1)]
            np.testing.assert_allclose([x.score for x in one], row[: len(own)].max(-1), rtol=1e-4)
    alone = task(TEXTS[1], " ".join(f"{a},{b}" for a, b in spans[1]))
    np.testing.assert_allclose([x.score for x in alone], [x.score for x in found[1]], rtol=1e-4)


@pytest.mark.parametrize(
    ("a", "b"), [((0, 3), (0, 12)), ((0, 12), (0, 3)), ((4, 12), (0, 12)), (BOB, BOB), ((13, 21), ADA)]
)
def test_marks_of_entities_that_overlap(a, b, tmp_path):
    path = build("luke-large-finetuned-tacred", tmp_path / "luke-large-finetuned-tacred")
    task: Any = zoo.load(path)
    given, _ = reference(path, "entity_pair_classification", [TEXT], [[a, b]])
    row = task.marker.row(TEXT, [a, b], 2)
    assert row.ids == given["input_ids"][0].tolist()
    places = [[i for i in one if i >= 0] for one in given["entity_position_ids"][0].tolist()]
    assert [[*range(*span)] for span in row.spans] == places


def test_long_entities_and_saving(tmp_path):
    """Of an entity of more than 30 tokens the first 30 count, and what is saved is the same task."""
    path = build("luke-large-finetuned-open-entity", tmp_path / "luke-large-finetuned-open-entity")
    text, task = "a b c d e f " * 3, zoo.load(path)
    _, logits = reference(path, "entity_classification", [text], [[(0, 35)]])
    found = task(text, spans=(0, 35), function_to_apply="none")  # type: ignore[call-arg]
    np.testing.assert_allclose([x.score for x in found], np.sort(logits[0])[::-1], atol=1e-4)
    task.save(tmp_path / "again")
    assert zoo.load(tmp_path / "again")(text, spans=(0, 35), function_to_apply="none") == found  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([], "spans is"),
        ("0,a", "expected .start, end"),
        ([(0.0, 3)], "spans is"),
        ([(0, 3), (4, 5)], r"spans has 2 spans, expected 1"),
        ([(3, 3)], r"\[3, 3\) is no part of a text of 34 characters"),
        ([(30, 35)], r"\[30, 35\) is no part"),
        ([(3, 4)], "which has no token"),
        (None, "spans is None"),
    ],
)
def test_spans_that_do_not_fit(spans, message, tmp_path):
    task: Any = zoo.load(build("luke-large-finetuned-open-entity", tmp_path))
    with pytest.raises(InputError, match=message):
        task(TEXT, spans)


def test_some_of_several_and_files_that_are_missing(tmp_path):
    path = build("luke-large-finetuned-open-entity", tmp_path)
    task: Any = zoo.load(path)
    with pytest.raises(BatchError) as caught:
        task([TEXT, "a " * 100, "He"], [ADA, (0, 1), (0, 9)])
    assert caught.value.results[0] == task(TEXT, ADA)
    assert "has 105 tokens, and the checkpoint takes at most 64" in str(caught.value.errors[1])
    assert "[0, 9) is no part" in str(caught.value.errors[2])
    with pytest.raises(InputError, match="2 for 1 text, expected a list for each"):
        task([TEXT], [ADA, ADA])
    vocabulary = json.loads((path / "entity_vocab.json").read_text())
    (path / "entity_vocab.json").write_text(json.dumps({**vocabulary, "[MASK]": "2"}))
    with pytest.raises(TokenizerError, match=r"has no id of '\[MASK\]'"):
        zoo.load(path)
    (path / "entity_vocab.json").unlink()
    with pytest.raises(TokenizerError, match=r"has no entity_vocab\.json"):
        zoo.load(path)
