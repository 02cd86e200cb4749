"""XLNet: padding before a text, the last token, two texts, files by heads, answers, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError, UnsupportedError
from zoo.loading import load_model
from zoo.models.xlnet import XLNetConfig
from zoo.weights.files import open_weights

TEXTS = ["They said nothing about it.", "No", "How many people live in this city, and what do they do all day long?"]
QUESTION, CONTEXT = "Where do they live?", "They live in the old town by the water, and have a good place to work."


def pipe(task, folder, **more):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    return transformers.pipeline(task, model=str(folder), device="cpu", **more)


@pytest.mark.parametrize("name", ["xlnet-classifier", "xlnet-plain-classifier"])
@pytest.mark.parametrize("device", ["cpu", "onnx"])
def test_classes_are_those_of_the_pipeline(name, device, tmp_path):
    """It pads texts on the left, and each ends with <cls>; transformers 5 gives the model no segments."""
    path = build(name, tmp_path)
    ours, theirs = zoo.load(path, device=device), pipe("text-classification", path, batch_size=3)
    wanted = theirs(TEXTS, top_k=None)
    for found, expected in zip(ours(TEXTS), wanted, strict=True):
        assert [one.label for one in found] == [one["label"] for one in expected]
        np.testing.assert_allclose([x.score for x in found], [x["score"] for x in expected], rtol=1e-4)
    pair: Any = theirs({"text": TEXTS[0], "text_pair": TEXTS[2]}, top_k=None)
    found = ours(TEXTS[0], pairs=TEXTS[2])
    np.testing.assert_allclose([x.score for x in found], [x["score"] for x in pair], rtol=1e-4)


def test_tags_are_those_of_the_pipeline(tmp_path):
    path = build("xlnet-ner", tmp_path)
    ours, theirs = zoo.load(path), pipe("token-classification", path, aggregation_strategy="none", ignore_labels=[])
    for text in TEXTS:
        found, wanted = ours(text, aggregation_strategy="none", ignore_labels=()), theirs(text)
        assert [one.label for one in found] == [one["entity"] for one in wanted]
        assert [(one.start, one.end) for one in found] == [(one["start"], one["end"]) for one in wanted]
        np.testing.assert_allclose([x.score for x in found], [x["score"] for x in wanted], rtol=1e-4)


@pytest.mark.parametrize("window", [384, 40])
def test_answers_with_the_context_first(window, tmp_path):
    """As scripts of transformers train and ask it: the context is first, and <cls>, the last token, is no answer."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    path = build("xlnet-squad", tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(path, dtype=torch.float32).eval()
    assert type(model).__name__ == "XLNetForQuestionAnsweringSimple"
    options = {"truncation": "only_first", "max_length": min(window, 160), "stride": 12}
    rows = tokenizer(CONTEXT, QUESTION, return_overflowing_tokens=True, return_offsets_mapping=True, **options)
    scores, nothing = {}, 1.0
    for k, ids in enumerate(rows["input_ids"]):
        offsets = rows["offset_mapping"][k]
        assert ids[-1] == tokenizer.cls_token_id
        with torch.no_grad():
            out = model(torch.tensor([ids]))
        inside = np.array([side == 0 for side in rows.sequence_ids(k)])
        inside[-1] = True
        start, end = (np.where(inside, x[0].double().numpy(), -np.inf) for x in (out.start_logits, out.end_logits))
        start, end = (np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in (start, end))
        nothing = min(nothing, start[-1] * end[-1])
        for i in np.flatnonzero(inside[:-1]):
            for j in range(i, min(i + 15, inside[:-1].sum())):
                place = offsets[i][0], offsets[j][1]
                scores[place] = max(scores.get(place, 0), start[i] * end[j])
    ours = zoo.load(path, dtype="float32")
    found = ours(
        QUESTION, CONTEXT, top_k=10**6, max_seq_len=window, doc_stride=12, whole_words=False, handle_impossible=True
    )
    (none,) = [one for one in found if not one.text]
    np.testing.assert_allclose(none.score, nothing, rtol=1e-3)
    best = sorted((score for score in scores.values()), reverse=True)[:10]
    np.testing.assert_allclose([one.score for one in found if one.text][:10], best, rtol=1e-3)
    top = next(one for one in found if one.text)
    assert scores[top.start, top.end] == pytest.approx(best[0], rel=1e-3)
    assert CONTEXT[top.start : top.end] == top.text


def test_padding_on_either_side_is_the_same_text(tmp_path):
    """Distances alone count, and the state of a text is that of its last token, wherever padding is."""
    model: Any = load_model(build("xlnet-classifier", tmp_path))
    ids, types = np.array([[20, 30, 40, 4, 3]]), np.array([[0, 0, 0, 0, 2]])
    alone, nothing = model(ids, None, types), np.zeros((1, 3), np.int64)
    for left in (True, False):
        padded, kinds, mask = (
            np.concatenate([pad, x] if left else [x, pad], 1)
            for x, pad in ((ids, nothing + 5), (types, nothing + 3), (np.ones_like(ids), nothing))
        )
        np.testing.assert_allclose(model(padded, mask, kinds), alone, atol=1e-5)
    np.testing.assert_allclose(model(ids, None, types * 0), model(ids), atol=1e-5)
    assert np.abs(model(ids) - alone).max() > 1e-3
    assert np.abs(model(ids, None, types + 1) - alone).max() < 1e-5  # which text a token is of does not matter


def test_files_have_matrices_by_heads(tmp_path):
    path = build("xlnet-base-cased", tmp_path / "a")
    model = load_model(path, strict=True)
    zoo.save(model, tmp_path / "b")
    first, second = open_weights(path), open_weights(tmp_path / "b")
    assert {*first.names()} - {*second.names()} <= {"lm_loss.weight"}
    assert second.shape("transformer.layer.0.rel_attn.q") == (48, 4, 12)
    for name in second.names():
        np.testing.assert_array_equal(first.read(name).array, second.read(name).array)  # type: ignore[union-attr]
    assert "transformer.mask_emb" in second.names()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"attn_type": "uni"}, UnsupportedError),
        ({"bi_data": True}, UnsupportedError),
        ({"clamp_len": 7}, UnsupportedError),
        ({"summary_type": "first"}, UnsupportedError),
        ({"summary_activation": "nonsense"}, None),
        ({"d_head": 7}, ConfigError),
        ({"d_model": 45, "n_head": 5}, ConfigError),
        ({"n_head": 7}, ConfigError),
        ({"d_inner": 0}, ConfigError),
        ({"dropout": 1.0}, ConfigError),
    ],
)
def test_configs_that_are_refused(change, error):
    if error is None:
        from zoo.models.xlnet import XLNetForSequenceClassification

        config = XLNetConfig.from_dict({"d_model": 8, "n_head": 2, "n_layer": 1, "d_inner": 8, **change})
        with pytest.raises(UnsupportedError, match="nonsense"):
            XLNetForSequenceClassification.from_config(config)
        return
    with pytest.raises(error):
        XLNetConfig.from_dict(change)


def test_names_of_other_families():
    config = XLNetConfig.from_dict({"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "n_token": 9})
    assert (config.d_model, config.n_head, config.n_layer, config.vocab_size) == (64, 4, 2, 9)
    assert XLNetConfig.from_dict({"clamp_len": -1, "mem_len": 512, "reuse_len": 256}).hidden_size == 1024
