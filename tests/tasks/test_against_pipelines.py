"""FillMask, Classify and Tag against the pipelines of transformers, and Rerank against sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import InputError, UnsupportedError

TEXTS = [
    "My name is Wolfgang Müller-Lüdenscheid and I live in Berlin, near the river.",
    "Hello",
    "The U.N. (in Genève) said: don't 😀 worry!  Antidisestablishmentarianism -- 3.14%",
    "  Leading and trailing   spaces ",
]
KINDS = ["bert", "roberta"]


@pytest.mark.parametrize("kind", KINDS)
def test_fill_mask(reference, pipe, kind):
    folder = reference(kind, "ForMaskedLM")
    fill, theirs = zoo.load(folder), pipe("fill-mask", folder)
    assert fill.name == "fill-mask"
    m = fill.mask_token
    texts = [f"Paris is the {m} of France.", f"{m}!", f"The {m} of {m} is, as ever, {m}."]
    for top_k in (1, 5):
        for text, ours in zip(texts, fill(texts, top_k=top_k), strict=True):
            expected = theirs(text, top_k=top_k)
            lists = zip([ours], [expected], strict=True) if text.count(m) == 1 else zip(ours, expected, strict=True)
            for found, wanted in lists:
                assert [f.token_id for f in found] == [w["token"] for w in wanted]
                assert [f.text for f in found] == [w["sequence"] for w in wanted]
                np.testing.assert_allclose([f.score for f in found], [w["score"] for w in wanted], rtol=1e-4)


def test_fill_mask_targets(reference, pipe):
    folder = reference("bert", "ForMaskedLM")
    fill, theirs = zoo.load(folder), pipe("fill-mask", folder)
    ours = fill("a [MASK].", targets=["dog", "Cat", "horse", "dog"])
    wanted = theirs("a [MASK].", targets=["dog", "cat", "horse"])
    assert [f.token for f in ours] == [w["token_str"] for w in wanted]
    np.testing.assert_allclose([f.score for f in ours], [w["score"] for w in wanted], rtol=1e-4)
    with pytest.raises(InputError, match="'antidisestablishment' is not one token of the vocabulary, but anti, ##dis"):
        fill("a [MASK].", targets=["antidisestablishment"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "problem"),
    [(3, None), (3, "multi_label_classification"), (1, None), (1, "regression"), (4, "single_label_classification")],
)
def test_classify(reference, pipe, kind, labels, problem):
    folder = reference(kind, "ForSequenceClassification", num_labels=labels, problem_type=problem)
    classify, theirs = zoo.load(folder, task="classify"), pipe("text-classification", folder)
    for text, ours in zip(TEXTS, classify(TEXTS), strict=True):
        wanted = theirs(text, top_k=None)
        assert [label.label for label in ours] == [w["label"] for w in wanted]
        np.testing.assert_allclose([x.score for x in ours], [w["score"] for w in wanted], rtol=1e-4, atol=1e-6)
    for function in ("softmax", "sigmoid", "none"):
        ours = classify(TEXTS[0], function_to_apply=function, top_k=1)
        wanted = theirs(TEXTS[0], function_to_apply=function, top_k=1)
        np.testing.assert_allclose(ours[0].score, wanted[0]["score"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_classify_pairs(reference, pipe, kind):
    folder = reference(kind, "ForSequenceClassification", num_labels=3)
    classify, theirs = zoo.load(folder), pipe("text-classification", folder)
    pairs = [("A man sleeps.", "A man is awake."), ("one", "two " * 50), ("three", "3")]
    wanted = [theirs({"text": a, "text_pair": b}, top_k=None) for a, b in pairs]
    for ours in (classify(pairs), classify([a for a, _ in pairs], [b for _, b in pairs])):
        for x, w in zip(ours, wanted, strict=True):
            assert x[0].label == w[0]["label"]
            np.testing.assert_allclose([s.score for s in x], [s["score"] for s in w], rtol=1e-4)
    assert classify(*pairs[0])[0].label == wanted[0][0]["label"]


@pytest.mark.parametrize("names", [["contradiction", "neutral", "entailment"], ["ENTAILMENT", "not_entailment"]])
def test_zero_shot(reference, pipe, names):
    ids = {name: i for i, name in enumerate(names)}
    folder = reference("roberta", "ForSequenceClassification", id2label=dict(enumerate(names)), label2id=ids)
    zero_shot = zoo.load(folder, task="zero-shot-classification")
    theirs = pipe("zero-shot-classification", folder)
    texts = [TEXTS[0], "word " * 200]
    for options in ({}, {"multi_label": True}, {"hypothesis_template": "About {}!"}):
        for labels in (["the sea", "a phone", "war"], "urgent, not urgent", ["one"]):
            found = zero_shot(texts, labels, **options)
            for text, ours in zip(texts, found, strict=True):
                wanted = theirs(text, labels, **options)
                assert [one.label for one in ours] == wanted["labels"]
                np.testing.assert_allclose([one.score for one in ours], wanted["scores"], rtol=1e-4)
    other = reference("roberta", "ForSequenceClassification", id2label={0: "good", 1: "bad"})
    with pytest.raises(UnsupportedError, match=r"begins with 'entail' .* labels are good, bad"):
        zoo.load(other, task="zero-shot-classification")


LABELS = {
    "bio": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    "plain": ["O", "NOUN", "VERB"],
    "iob1": ["O", "I-PER", "I-LOC", "B-LOC"],
}


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
@pytest.mark.parametrize("kind", ["bert-cased", "roberta"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_tag(reference, pipe, kind, labels):
    folder = reference(kind, "ForTokenClassification", id2label=dict(enumerate(labels)))
    tag, theirs = zoo.load(folder), pipe("token-classification", folder)
    texts = [TEXTS[0], TEXTS[1], TEXTS[3], "John Smith of New York City visited Zagreb-based Acme Corp.", ""]
    for aggregation in ("none", "simple", "first", "average", "max"):
        for text, ours in zip(texts, tag(texts, aggregation=aggregation), strict=True):
            wanted = theirs(text, aggregation_strategy=aggregation)
            name = "entity" if aggregation == "none" else "entity_group"
            assert [(e.label, e.start, e.end) for e in ours] == [(w[name], w["start"], w["end"]) for w in wanted]
            np.testing.assert_allclose([e.score for e in ours], [w["score"] for w in wanted], rtol=1e-4)
            assert all(e.text == text[e.start : e.end] for e in ours)
    again = tag(inputs=texts, aggregation_strategy="MAX", ignore_labels=["O"], batch_size=2, stride=5)
    assert again == tag(texts, aggregation="max")


def test_tag_keeps_the_labels_that_are_asked_for(reference):
    tag = zoo.load(reference("bert-cased", "ForTokenClassification", id2label=dict(enumerate(LABELS["plain"]))))
    every = tag(TEXTS[0], aggregation="none", ignore=[])
    assert len(every) == sum(~tag.tokenizer(TEXTS[0]).special_tokens_mask[0])
    assert tag(TEXTS[0], aggregation="none", ignore="NOUN") == [e for e in every if e.label != "NOUN"]


@pytest.mark.parametrize("kind", KINDS)
def test_rerank(reference, kind):
    st = pytest.importorskip("sentence_transformers")
    folder = reference(kind, "ForSequenceClassification", num_labels=1)
    rerank, theirs = zoo.load(folder), st.CrossEncoder(str(folder), device="cpu")
    assert rerank.name == "rerank"
    documents = [*TEXTS, "", "a document " * 20]
    for k in (None, 2):
        ours, wanted = (
            rerank("Where do I live?", documents, top_k=k),
            theirs.rank("Where do I live?", documents, top_k=k),
        )
        assert [r.corpus_id for r in ours] == [w["corpus_id"] for w in wanted]
        dictionaries = rerank.rank("Where do I live?", documents, k, return_documents=True)
        assert [one["corpus_id"] for one in dictionaries] == [w["corpus_id"] for w in wanted]
        assert dictionaries[0].keys() == {"corpus_id", "score", "text"}
        np.testing.assert_allclose([r.score for r in ours], [w["score"] for w in wanted], rtol=1e-4)
        assert all(r.text == documents[r.document] for r in ours)
    raw = np.array([r.score for r in rerank("Where do I live?", documents, raw=True)])
    np.testing.assert_allclose(
        1 / (1 + np.exp(-raw)), [r.score for r in rerank("Where do I live?", documents)], rtol=1e-5
    )


@pytest.mark.parametrize("where", ["config", "old config", "file"])
def test_rerank_scores_are_what_the_checkpoint_says(reference, where):
    st = pytest.importorskip("sentence_transformers")
    identity = "torch.nn.modules.linear.Identity"
    options = {
        "config": {"sentence_transformers": {"activation_fn": identity}},
        "old config": {"sbert_ce_default_activation_function": identity},
        "file": {},
    }[where]
    folder = reference("bert", "ForSequenceClassification", num_labels=1, **options)
    theirs = st.CrossEncoder(str(folder), device="cpu")
    if where == "file":
        theirs.activation_fn = pytest.importorskip("torch").nn.Identity()
        theirs.save(str(folder))
    ours = zoo.load(folder)
    assert ours.name == "rerank"
    scores = [r.score for r in ours("q", TEXTS)]
    np.testing.assert_allclose(scores, [w["score"] for w in theirs.rank("q", TEXTS)], rtol=1e-4, atol=1e-5)
    assert scores == [r.score for r in ours("q", TEXTS, raw=True)]


def test_rerank_wants_one_label(reference):
    with pytest.raises(UnsupportedError, match="has 2 labels"):
        zoo.load(reference("bert", "ForSequenceClassification"), task="rerank")
