"""Sparse vectors: equal to those of sentence-transformers' SparseEncoder on the same checkpoints."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.tasks.vectors import SparseVectors, nearest_of, sparse_scores

TEXTS = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.", "", "東京 and 😀"]


@pytest.fixture(scope="module")
def splade(reference, tmp_path_factory):
    """`splade(module, pooling, **options)`: the folder that sentence-transformers writes, and its model."""
    st = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sparse_encoder.modules")
    base = pytest.importorskip("sentence_transformers.base.modules")
    body = str(reference("bert", "ForMaskedLM"))

    def make(strategy="max", activation="relu", old=False, **options):
        transformer = modules.MLMTransformer(body) if old else base.Transformer(body, transformer_task="fill-mask")
        parts = [transformer, modules.SpladePooling(strategy, activation)]
        model = st.SparseEncoder(modules=parts, device="cpu", **options)
        folder = tmp_path_factory.mktemp("splade")
        model.save(str(folder))
        return folder, model

    return make


def assert_equal(found: SparseVectors, wanted) -> None:
    wanted = wanted.to_dense().numpy()
    assert np.linalg.norm(found.toarray() - wanted) <= 1e-5 * np.linalg.norm(wanted)
    assert found.shape == wanted.shape
    assert (found.toarray() > 0).any(axis=1).all()


@pytest.mark.parametrize(
    ("strategy", "activation", "old"),
    [("max", "relu", True), ("max", "log1p_relu", False), ("sum", "relu", False), ("sum", "log1p_relu", True)],
)
def test_vectors_are_those_of_sentence_transformers(splade, strategy, activation, old):
    folder, theirs = splade(strategy, activation, old)
    ours = zoo.load(folder)
    assert ours.name == "sparse-embed"
    vectors = ours.encode(TEXTS)
    assert_equal(vectors, theirs.encode(TEXTS))
    wanted = theirs.similarity(theirs.encode(TEXTS[:2]), theirs.encode(TEXTS)).numpy()
    np.testing.assert_allclose(ours.similarity(TEXTS[:2], TEXTS), wanted, rtol=1e-4)
    for mine, other in zip(ours.decode(vectors, top_k=4), theirs.decode(theirs.encode(TEXTS), top_k=4), strict=True):
        assert [token for token, _ in mine] == [token for token, _ in other]
        np.testing.assert_allclose([x for _, x in mine], [x for _, x in other], rtol=1e-4)


def test_prompts_and_the_largest_weights(splade):
    folder, theirs = splade(max_active_dims=7, prompts={"query": "search: "}, similarity_fn_name="cosine")
    ours = zoo.load(folder)
    assert_equal(ours.encode_query(TEXTS), theirs.encode_query(TEXTS))
    assert_equal(ours.encode_document(TEXTS), theirs.encode_document(TEXTS))
    assert_equal(ours.encode(TEXTS, "query", max_active_dims=3), theirs.encode(TEXTS, "query", max_active_dims=3))
    assert np.diff(ours.encode(TEXTS).indptr).tolist() == [7] * 5
    wanted = theirs.similarity(theirs.encode(TEXTS), theirs.encode(TEXTS)).numpy()
    np.testing.assert_allclose(ours.similarity(TEXTS), wanted, atol=1e-4)
    hits = ours.semantic_search(TEXTS[:2], ours.encode_document(TEXTS), top_k=2)
    scores = ours.similarity(ours.encode_query(TEXTS[:2]), ours.encode_document(TEXTS))
    assert [[hit.corpus_id for hit in row] for row in hits] == np.argsort(-scores, axis=1)[:, :2].tolist()


def test_a_call_gives_words_with_weights(splade, tmp_path):
    folder, _ = splade()
    ours = zoo.load(folder)
    words = ours(TEXTS[0], top_k=3)
    assert words == sorted(words, key=lambda one: -one.weight)
    assert [one.token for one in words] == [one.token for one in ours(TEXTS, top_k=3)[0]]
    vector = ours.encode(TEXTS[0]).toarray()[0]
    assert [one.weight for one in words] == vector[[one.token_id for one in words]].tolist()
    assert words[0].token == ours.tokenizer.tokens([words[0].token_id])[0]
    ours.save(tmp_path / "saved")
    assert zoo.load(tmp_path / "saved")(TEXTS[0], top_k=3) == words


def test_a_checkpoint_without_modules(reference):
    """By hand: the largest log(1 + max(logit, 0)) of a text's tokens."""
    ours = zoo.load(reference("bert", "ForMaskedLM"), task="sparse-embed")
    ids = ours.tokenizer(TEXTS[0]).input_ids
    model: Any = ours.model
    logits = model(ids)[0]
    wanted = [max(math.log1p(max(x, 0.0)) for x in column) for column in logits.T.tolist()]
    np.testing.assert_allclose(ours.encode(TEXTS[0]).toarray()[0], wanted, rtol=1e-5, atol=1e-6)
    assert ours.encode([]).shape == (0, 30522)
    assert ours.encode([]).toarray().shape == (0, 30522)


@pytest.mark.parametrize(
    ("file", "change", "error", "match"),
    [
        ("1_SpladePooling/config.json", {"pooling_strategy": "mean"}, UnsupportedError, "'mean' is not implemented"),
        ("1_SpladePooling/config.json", {"activation_function": "relu2"}, UnsupportedError, "did you mean 'relu'"),
        ("config_sentence_transformers.json", {"max_active_dims": 0}, ConfigError, "max_active_dims = 0"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "manhattan"}, UnsupportedError, "only dot, cos"),
        ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}, UnsupportedError, "'CrossEncoder'"),
        (
            "sentence_bert_config.json",
            {"transformer_task": "feature-extraction"},
            UnsupportedError,
            "expected 'fill-mask'",
        ),
    ],
)
def test_what_is_not_implemented_is_refused(splade, file, change, error, match):
    folder, _ = splade()
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error, match=match):
        zoo.load(folder)


def test_what_does_not_fit_is_refused(splade):
    folder, _ = splade()
    with pytest.raises(UnsupportedError, match="no single vector for a text: use task='sparse-embed'"):
        zoo.load(folder, task="embed")
    ours = zoo.load(folder)
    with pytest.raises(InputError, match=r"prompt_name is 'qery', and the checkpoint's are: .*did you mean 'query'"):
        ours.encode(TEXTS, "qery")
    with pytest.raises(InputError, match="SparseVectors, whose parts"):
        ours.encode(TEXTS, convert_to_tensor=True)
    with pytest.raises(InputError, match="top_k is 0"):
        ours(TEXTS[0], top_k=0)


def test_scores_of_sparse_vectors(rng):
    dense = [np.where(rng.random((n, 12)) < 0.3, rng.random((n, 12)), 0).astype(np.float32) for n in (3, 5)]
    dense[1][2] = 0
    a, b = (SparseVectors.of([(np.flatnonzero(x), x[x != 0]) for x in z], 12) for z in dense)
    np.testing.assert_array_equal(b.toarray(), dense[1])
    np.testing.assert_allclose(sparse_scores(a, b), dense[0] @ dense[1].T, rtol=1e-6)
    assert nearest_of(np.array([[1.0, 3.0, 3.0]]), 2) == [[(1, 3.0), (2, 3.0)]]
    with pytest.raises(InputError, match="of 12 and of 13 dimensions"):
        sparse_scores(a, SparseVectors.of([], 13))


def test_on_onnx_runtime(splade):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    folder, theirs = splade("sum")
    assert_equal(zoo.load(folder, device="onnx").encode(TEXTS), theirs.encode(TEXTS))
