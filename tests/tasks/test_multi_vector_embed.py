"""Vectors of tokens: equal to those of sentence-transformers' MultiVectorEncoder and of PyLate on the same files."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import CheckpointError, ConfigError, InputError, UnsupportedError
from zoo.tasks.vectors import maxsim
from zoo.weights import RawTensor
from zoo.weights.safetensors import write_safetensors

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "pylate.json").read_text())
QUERIES = ["Where is the boy?", "the", "It's so sunny outside, isn't it? " * 3]
DOCUMENTS = ["The boy, who sat - in front of her.", "no", "", "a very long text, " * 9]


def edit(path: Path, **change: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")


def assert_equal(found: Any, wanted: Any) -> None:
    assert [x.shape for x in found] == [tuple(x.shape) for x in wanted]
    a, b = np.concatenate(found), np.concatenate([np.asarray(x) for x in wanted])
    assert np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(b)


@pytest.fixture(scope="module")
def multi(reference, tmp_path_factory):
    """`multi(expansion, kind, **options)`: the folder that sentence-transformers writes, and its model."""
    pytest.importorskip("sentence_transformers.multi_vector_encoder")
    import sentence_transformers as st
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    tokens: Any = {"module_input_name": "token_embeddings"}

    def make(expansion=None, kind="bert", prompts=None, lengths=(None, None), dense=2, **mask):
        body = str(reference(kind, "Model"))
        parts = [
            Transformer(body, query_expansion=expansion, query_length=lengths[0], document_length=lengths[1]),
            *(Dense(32 if i == 0 else 8, 8, bias=bool(i), **tokens) for i in range(dense)),
            MultiVectorMask(list(string.punctuation), **mask),
            Normalize(**tokens),
        ]
        model = st.MultiVectorEncoder(modules=parts, device="cpu", prompts=prompts)
        folder = tmp_path_factory.mktemp("multi")
        model.save(str(folder))
        return folder, model

    return make


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expansion": {"strategy": "fixed", "length": 12}, "lengths": (None, 20)},
        {"expansion": {"strategy": "fixed", "length": 40, "attend": True}, "kind": "roberta", "dense": 1},
        {"expansion": {"strategy": "min", "length": 9, "token": "[PAD]"}, "skiplist_tasks": ["query", "document"]},
        {"expansion": {"strategy": "min", "length": 9}, "lengths": (14, 10), "prompts": {"query": "ask: "}},
    ],
    ids=["plain", "fixed", "attended", "min", "lengths"],
)
@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_vectors_are_those_of_sentence_transformers(multi, options):
    folder, theirs = multi(**options)
    ours = zoo.load(folder)
    assert ours.name == "multi-vector-embed"
    queries, documents = theirs.encode_query(QUERIES), theirs.encode_document(DOCUMENTS)
    assert_equal(ours.encode_query(QUERIES), queries)
    assert_equal(ours.encode_document(DOCUMENTS), documents)
    assert_equal(ours(DOCUMENTS), documents)
    assert_equal(ours.encode(DOCUMENTS), theirs.encode(DOCUMENTS))
    assert_equal([ours.encode_query(QUERIES[0])], queries[:1])
    wanted = theirs.similarity(queries, documents).numpy()
    np.testing.assert_allclose(ours.similarity(QUERIES, DOCUMENTS), wanted, rtol=1e-4)


@pytest.mark.parametrize("name", ["default", "attended"])
@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_vectors_are_those_of_pylate(name, tmp_path):
    """PyLate's own files and vectors, of a checkpoint that is made again here."""
    folder, golden = build("bert-base-uncased", tmp_path / "colbert"), GOLDEN[name]
    (folder / "modules.json").write_text(json.dumps(GOLDEN["modules"]))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64, "do_lower_case": false}')
    (folder / "config_sentence_transformers.json").write_text(json.dumps(golden["settings"]))
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "config.json").write_text(json.dumps(GOLDEN["dense"]))
    matrix = np.random.default_rng(0).normal(size=(8, 48)).astype(np.float32)
    write_safetensors(folder / "1_Dense" / "model.safetensors", {"linear.weight": RawTensor(matrix, "F32")})
    task = zoo.load(folder, task="multi-vector-embed")
    task.save(tmp_path / "saved")
    for ours in (task, zoo.load(tmp_path / "saved")):
        for kind, texts in (("query", GOLDEN["queries"]), ("document", GOLDEN["documents"])):
            found = getattr(ours, f"encode_{kind}")(texts)
            for a, b in zip(found, golden[kind], strict=True):
                np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_the_layout_of_pylate_with_added_markers(multi):
    pytest.importorskip("transformers")
    folder, _ = multi(dense=1, prompts={"query": "[Q] ", "document": "[D] "})
    import sentence_transformers as st
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    tokenizer.add_tokens(["[Q] ", "[D] "])
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    modules = json.loads((folder / "modules.json").read_text())[:2]
    modules[1]["type"] = "pylate.models.Dense.Dense"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 31}')
    settings = folder / "config_sentence_transformers.json"
    settings.write_text("{}")
    edit(settings, model_type="ColBERT", query_prefix="[Q] ", document_prefix="[D] ", query_length=16)
    edit(settings, similarity_fn_name="MaxSim", document_length=20, prompts={"query": "find: "})
    theirs, ours = st.MultiVectorEncoder(str(folder), device="cpu"), zoo.load(folder)
    assert_equal(ours.encode_query(QUERIES), theirs.encode_query(QUERIES))
    assert_equal(ours.encode_document(DOCUMENTS), theirs.encode_document(DOCUMENTS))
    assert_equal(ours.encode(DOCUMENTS, prompt="[Q] who: "), theirs.encode(DOCUMENTS, prompt="[Q] who: "))


@pytest.fixture
def stanford(reference):
    """`stanford(**metadata)`: a folder in the layout of ColBERT's own library."""
    safetensors = pytest.importorskip("safetensors.numpy")

    def make(**metadata):
        folder = reference("bert", "Model")
        tensors = safetensors.load_file(folder / "model.safetensors")
        tensors = {f"bert.{name}": array for name, array in tensors.items()}
        tensors["linear.weight"] = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
        safetensors.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        edit(folder / "config.json", architectures=["HF_ColBERT"])
        if metadata:
            (folder / "artifact.metadata").write_text(json.dumps(metadata))
        return folder

    return make


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"query_maxlen": 12, "doc_maxlen": 18, "query_token_id": "[unused5]", "mask_punctuation": False},
        {"attend_to_mask_tokens": True, "query_maxlen": 40, "mask_punctuation": True},
    ],
    ids=["none", "own", "attended"],
)
@pytest.mark.filterwarnings("ignore:.*were cut there")
def test_the_layout_of_colbert_itself(stanford, metadata, tmp_path):
    st = pytest.importorskip("sentence_transformers")
    folder = stanford(**metadata)
    ours = zoo.load(folder, strict=True)
    theirs = st.MultiVectorEncoder(str(folder), device="cpu")
    assert_equal(ours.encode_query(QUERIES), theirs.encode_query(QUERIES))
    assert_equal(ours.encode_document(DOCUMENTS), theirs.encode_document(DOCUMENTS))
    with pytest.raises(UnsupportedError, match=r"linear\.weight is beside the model"):
        ours.save(tmp_path / "saved")


def test_a_projection_that_is_missing(stanford):
    folder = stanford()
    safetensors = pytest.importorskip("safetensors.numpy")
    tensors = safetensors.load_file(folder / "model.safetensors")
    del tensors["linear.weight"]
    safetensors.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"has no linear\.weight"):
        zoo.load(folder)


def test_on_onnx_runtime(multi):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    folder, theirs = multi({"strategy": "fixed", "length": 12})
    ours = zoo.load(folder, device="onnx")
    assert_equal(ours.encode_query(QUERIES[:2]), theirs.encode_query(QUERIES[:2]))
    assert_equal(ours.encode_document(DOCUMENTS), theirs.encode_document(DOCUMENTS))


def test_maxsim_by_hand(rng, monkeypatch):
    a, b = ([rng.normal(size=(n, 5)).astype(np.float32) for n in sizes] for sizes in ((3, 1), (4, 2, 7, 1)))
    wanted = [[sum(max(float(u @ v) for v in y) for u in x) for y in b] for x in a]
    for block in (1, 6, 100):
        monkeypatch.setattr("zoo.tasks.vectors.BLOCK", block)
        np.testing.assert_allclose(maxsim(a, b), wanted, rtol=1e-5)
    np.testing.assert_allclose(maxsim(a, b, mean=True)[0], np.array(wanted[0]) / 3, rtol=1e-5)


def test_search_and_what_does_not_fit(multi, tiny):
    folder, _ = multi()
    ours = zoo.load(folder)
    corpus = ours(DOCUMENTS)
    hits = ours.semantic_search(QUERIES[0], corpus, top_k=2)[0]
    assert [hit.corpus_id for hit in hits] == np.argsort(-ours.similarity(QUERIES[0], corpus)[0])[:2].tolist()
    with pytest.raises(InputError, match=r"b\[1\] has shape \(3, 9\), expected \(T, 8\)"):
        ours.similarity(QUERIES[0], [corpus[0], np.zeros((3, 9), np.float32)])
    with pytest.raises(InputError, match="use encode_query or encode_document"):
        ours.encode(QUERIES, is_query=True)
    with pytest.raises(UnsupportedError, match="task='multi-vector-embed'"):
        zoo.load(folder, task="embed")
    with pytest.raises(UnsupportedError, match="no projection of its tokens"):
        zoo.load(tiny(), task="multi-vector-embed")
    assert ours([]) == []


@pytest.mark.parametrize(
    ("file", "change", "error", "match"),
    [
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "most"}}, ConfigError, "fixed or min"),
        ("sentence_bert_config.json", {"document_length": 0}, ConfigError, "document_length = 0"),
        ("3_MultiVectorMask/config.json", {"keep_only_token_ids": [3]}, UnsupportedError, "keep_only_token_ids"),
        ("3_MultiVectorMask/config.json", {"skiplist_words": "!"}, ConfigError, "is not a list of words"),
    ],
)
def test_what_is_not_implemented_is_refused(multi, file, change, error, match):
    folder, _ = multi()
    edit(folder / file, **change)
    with pytest.raises(error, match=match):
        zoo.load(folder)
