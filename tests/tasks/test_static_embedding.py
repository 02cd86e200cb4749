"""Tables of vectors of tokens: the folders of model2vec and of StaticEmbedding, as sentence-transformers reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.errors import CheckpointError, ConfigError, UnsupportedError
from zoo.typing import RawTensor
from zoo.weights.safetensors import write_safetensors

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", "##s", "##ting", ".", "dog", "z"]
TEXTS = ["The cat sat on the mats.", "", "A dog 東京 [CLS]", "z " * 500, "sitting cats"]
V, D, R = len(WORDS), 8, 5


def tokenizer_json(**changes):
    vocab = {word: i for i, word in enumerate(WORDS)}
    added = [{"id": 0, "content": "[PAD]", "special": True}, {"id": 1, "content": "[UNK]", "special": True}]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    single = [{"SpecialToken": {"id": w, "type_id": 0}} for w in ("[CLS]", "[SEP]")]
    single.insert(1, {"Sequence": {"id": "A", "type_id": 0}})
    special = {w: {"id": w, "ids": [vocab[w]], "tokens": [w]} for w in ("[CLS]", "[SEP]")}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**flags, **token} for token in added],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special},
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
        **changes,
    }


def tensors(kind, rng):
    """The tensors of a file, and the table that they stand for."""
    table = rng.standard_normal((V, D)).astype(np.float32)
    if kind == "sentence-transformers":
        return {"embedding.weight": RawTensor(table, "F32")}, table
    if kind == "float16":
        return {"embeddings": RawTensor(table.astype(np.float16), "F16")}, table.astype(np.float16).astype(np.float32)
    if kind == "int8":
        numbers = np.clip(table * 40, -127, 127).astype(np.int8)
        return {"embeddings": RawTensor(numbers, "I8")}, numbers.astype(np.float32)
    if kind == "model2vec":
        return {"embeddings": RawTensor(table, "F32")}, table
    rows, weights = rng.integers(0, R, V), rng.random(V)
    stored = {"embeddings": RawTensor(table[:R], "F32"), "mapping": RawTensor(rows.astype(np.int64), "I64")}
    if kind == "mapping":
        return stored, table[rows]
    return {**stored, "weights": RawTensor(weights, "F64")}, (table[rows] * weights[:, None]).astype(np.float32)


def write(path: Path, kind="model2vec", layout="root", normalize=True, config=None, **changes):
    """A folder in one of the layouts of the two libraries; the table it stands for."""
    inside = path / ("0_StaticEmbedding" if layout == "older" else "")
    inside.mkdir(parents=True, exist_ok=True)
    stored, table = tensors(kind, np.random.default_rng(0))
    write_safetensors(inside / "model.safetensors", stored)
    (inside / "tokenizer.json").write_text(json.dumps(tokenizer_json(**changes)))
    if layout in ("root", "bare"):
        fields = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": normalize, "hidden_dim": D}
        (path / "config.json").write_text(json.dumps({**fields, **(config or {})}))
    if layout != "bare":
        kinds = {"root": ".", "newer": "", "older": "0_StaticEmbedding"}
        listed = [
            {"idx": 0, "name": "0", "path": kinds[layout], "type": "sentence_transformers.models.StaticEmbedding"}
        ]
        if normalize:
            listed.append(
                {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}
            )
        (path / "modules.json").write_text(json.dumps(listed))
    return table


def naive(table, ids, unit):
    mean = table[ids].astype(np.float64).mean(0) if ids else np.zeros(D)
    return mean / max(np.linalg.norm(mean), 1e-12) if unit else mean


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("layout", ["root", "newer", "older", "bare"])
@pytest.mark.parametrize("kind", ["sentence-transformers", "model2vec", "float16", "int8", "mapping", "weights"])
def test_vectors_are_means_of_rows(tmp_path, kind, layout, normalize):
    from tokenizers import Tokenizer

    table = write(tmp_path, kind, layout, normalize)
    embed = zoo.load(tmp_path)
    (tokenizer,) = tmp_path.rglob("tokenizer.json")
    rows = Tokenizer.from_file(str(tokenizer)).encode_batch(TEXTS, add_special_tokens=False)
    expected = [naive(table, row.ids, normalize) for row in rows]
    np.testing.assert_allclose(embed(TEXTS), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(embed.encode(TEXTS), expected, rtol=1e-5, atol=1e-6)
    assert embed.size == D
    assert embed("").shape == (D,)
    saved = zoo.load(zoo.save(embed, tmp_path / "saved"))
    np.testing.assert_array_equal(saved(TEXTS), embed(TEXTS))


@pytest.mark.parametrize("layout", ["root", "newer", "older"])
@pytest.mark.parametrize("kind", ["sentence-transformers", "model2vec", "mapping", "weights"])
@pytest.mark.parametrize(
    "changes", [{}, {"truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}}]
)
@pytest.mark.filterwarnings("ignore:.*cut there")
def test_vectors_are_sentence_transformers(tmp_path, kind, layout, changes):
    st = pytest.importorskip("sentence_transformers")
    write(tmp_path, kind, layout, **changes)
    (tmp_path / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "the "}, "truncate_dim": 6})
    )
    ours, theirs = zoo.load(tmp_path), st.SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.encode_query(TEXTS), theirs.encode_query(TEXTS), rtol=1e-4, atol=1e-6)
    zoo.save(ours, tmp_path / "saved")
    again = st.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), rtol=1e-5, atol=1e-6)


def broken(path, name, array, dtype="F32"):
    stored, _ = tensors("weights", np.random.default_rng(0))
    write_safetensors(path / "model.safetensors", {**stored, name: RawTensor(array, dtype)})


def test_what_does_not_fit_is_refused(tmp_path):
    write(tmp_path, "weights")
    broken(tmp_path, "weights", np.ones(V - 1, np.float32))
    with pytest.raises(CheckpointError, match=f"weights are of {V - 1} tokens, expected {V}"):
        zoo.load(tmp_path)
    broken(tmp_path, "mapping", np.full(V, R, np.int64), "I64")
    with pytest.raises(CheckpointError, match=rf"mapping has {R} to {R}, expected rows in \[0, {R}\)"):
        zoo.load(tmp_path)
    broken(tmp_path, "mapping", np.zeros(V, np.float32))
    with pytest.raises(CheckpointError, match="mapping is F32, expected whole numbers"):
        zoo.load(tmp_path)
    broken(tmp_path, "embedding.weight", np.zeros((V, D), np.float32))
    with pytest.raises(CheckpointError, match=r"found embeddings and embedding\.weight, expected one of"):
        zoo.load(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", {"vectors": RawTensor(np.zeros((V, D), np.float32), "F32")})
    with pytest.raises(CheckpointError, match=r"found only vectors, expected one of embeddings and embedding\.weight"):
        zoo.load(tmp_path)
    write(tmp_path / "bare", layout="bare", config={"normalize": "yes"})
    with pytest.raises(ConfigError, match="normalize = 'yes', expected true or false"):
        zoo.load(tmp_path / "bare")
    write(tmp_path / "elsewhere", layout="newer")
    listed = json.loads((tmp_path / "elsewhere" / "modules.json").read_text())
    listed[0]["path"] = "tables"
    (tmp_path / "elsewhere" / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(UnsupportedError, match="a StaticEmbedding in 'tables', expected"):
        zoo.load(tmp_path / "elsewhere")


def test_a_graph_gives_the_same(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    write(tmp_path, "weights")
    graphs, embed = zoo.load(tmp_path, device="onnx"), zoo.load(tmp_path)
    np.testing.assert_allclose(graphs(TEXTS[2:]), embed(TEXTS[2:]), rtol=1e-5, atol=1e-6)


def test_other_tasks(tmp_path):
    write(tmp_path, "weights")
    embed = zoo.load(tmp_path)
    with pytest.raises(UnsupportedError, match="its tasks are embed"):
        zoo.load(tmp_path, task="classify")
    hits = embed.semantic_search(["cats"], ["the dog", "the cat sat"], top_k=1)
    assert hits[0][0].corpus_id == 1
