"""Embed as users of sentence-transformers expect it: names of options, precisions, search, and older layouts."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest

import zoo
import zoo.lock
from zoo.errors import ConfigError, InputError, UnsupportedError, ZooError
from zoo.tasks.vectors import Hit, quantise, ranges_of, scores, semantic_search

TEXTS = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.", "", "東京 and 😀"]


@pytest.fixture(scope="module")
def embed(tiny):
    return zoo.load(tiny())


@pytest.fixture(scope="module")
def library():
    """sentence-transformers and its modules."""
    st = pytest.importorskip("sentence_transformers")
    return st, pytest.importorskip("sentence_transformers.sentence_transformer.modules")


@pytest.fixture(scope="module")
def encoder(reference, library, tmp_path_factory):
    """`encoder(*modules after pooling, **options)`: the folder that sentence-transformers writes, and its model."""
    st, modules = library
    body = reference("roberta", "Model")

    def make(*more, **options):
        parts = [modules.Transformer(str(body)), modules.Pooling(32, "mean"), *more]
        model = st.SentenceTransformer(modules=parts, device="cpu", **options)
        folder = tmp_path_factory.mktemp("encoder")
        model.save(str(folder))
        return folder, model

    return make


def naive_levels(x, low, high):
    out = np.empty(x.shape, np.uint8)
    for (i, j), value in np.ndenumerate(x):
        step = np.float32(high[j] - low[j]) / np.float32(255) or np.float32(1)
        out[i, j] = min(max(np.floor((value - low[j]) / step), 0), 255)
    return out


@pytest.mark.filterwarnings("ignore:.*ranges of")
def test_precisions(rng):
    x = rng.normal(size=(40, 13)).astype(np.float32)
    x[:, 3] = 0.5  # a range of none
    levels = naive_levels(x, x.min(0), x.max(0))
    np.testing.assert_array_equal(quantise(x, "uint8"), levels)
    np.testing.assert_array_equal(quantise(x, "int8"), levels.astype(int) - 128)
    bits = np.unpackbits(quantise(x, "ubinary"), axis=1)[:, :13]
    np.testing.assert_array_equal(bits, x > 0)
    np.testing.assert_array_equal(quantise(x, "binary").astype(int) + 128, quantise(x, "ubinary"))
    np.testing.assert_array_equal(quantise(x[3], "int8", ranges_of(x)), quantise(x, "int8")[3])
    np.testing.assert_array_equal(quantise(x[3], "binary"), quantise(x, "binary")[3])


@pytest.mark.filterwarnings("ignore:.*ranges of")
@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
def test_precisions_are_bit_equal_to_sentence_transformers(precision, rng):
    theirs = pytest.importorskip("sentence_transformers.util.quantization").quantize_embeddings
    x = rng.normal(size=(300, 37)).astype(np.float32)
    calibration = rng.normal(size=(200, 37)).astype(np.float32)
    found = quantise(x, precision)
    np.testing.assert_array_equal(found, theirs(x, precision))
    assert found.dtype == theirs(x, precision).dtype
    if precision.endswith("int8"):
        other = theirs(x, precision, calibration_embeddings=calibration)
        np.testing.assert_array_equal(quantise(x, precision, ranges_of(calibration)), other)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"precision": "int4"}, "precision is 'int4', expected one of float32, int8.*did you mean 'int8'"),
        ({"precision": "int8"}, "of one vector needs ranges="),
        ({"precision": "binary", "ranges": [[0], [1]]}, "ranges are for precision 'int8' and 'uint8'"),
        ({"precision": "int8", "ranges": [[0], [1]]}, r"ranges have shape \(2, 1\), expected \(2, 32\)"),
        ({"precision": "int8", "ranges": np.full((2, 32), np.nan)}, "of finite numbers"),
        ({"truncate_dim": 33}, r"truncate_dim is 33, expected 1 \.\.\. 32"),
        ({"truncate_dim": True}, "truncate_dim is True"),
        ({"route": "query"}, "the same layers for all texts"),
    ],
)
def test_options_that_do_not_fit(embed, options, match):
    with pytest.raises(InputError, match=match):
        embed("a", **options)


def test_truncated_vectors_are_normalised_after_it(embed):
    whole = embed(TEXTS, normalize=False)
    np.testing.assert_array_equal(embed(TEXTS, truncate_dim=8, normalize=False), whole[:, :8])
    some = embed(TEXTS, truncate_dim=8, normalize=True)
    wanted = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(some, wanted, rtol=1e-5, atol=1e-6)


def test_no_texts_give_no_vectors(embed):
    assert embed([]).shape == (0, 32)
    assert embed([], truncate_dim=9, precision="binary").shape == (0, 2)
    assert embed.encode([]).dtype == np.float32
    assert list(embed.stream([])) == []
    assert embed([], precision="int8").shape == (0, 32)


def test_a_stream_reads_as_it_goes(embed):
    read = 0

    def texts():
        nonlocal read
        for i in range(9000):
            read += 1
            yield f"text {i % 7}"

    vectors = embed.stream(texts(), truncate_dim=4)
    first = [next(vectors) for _ in range(3)]
    assert read < 5000
    np.testing.assert_allclose(first, embed(["text 0", "text 1", "text 2"], truncate_dim=4), rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"texts\[1\] is of type int"):
        list(embed.stream(["a", 1]))
    with pytest.raises(InputError, match="of a stream needs ranges="):
        embed.stream(["a"], precision="int8")


@pytest.mark.filterwarnings("ignore:.*ranges of")
def test_encode_is_that_of_sentence_transformers(encoder):
    folder, theirs = encoder(prompts={"query": "find: ", "document": "text: ", "other": "so: "})
    ours = zoo.load(folder)
    near = {"rtol": 1e-4, "atol": 1e-5}
    for options in (
        {},
        {"prompt_name": "other"},
        {"prompt": "mine "},
        {"normalize_embeddings": True},
        {"truncate_dim": 7, "normalize_embeddings": True, "batch_size": 2, "show_progress_bar": False},
        {"convert_to_numpy": True, "convert_to_tensor": False, "output_value": "sentence_embedding", "device": None},
    ):
        np.testing.assert_allclose(ours.encode(TEXTS, **options), theirs.encode(TEXTS, **options), **near)
    np.testing.assert_allclose(ours.encode_query(TEXTS), theirs.encode_query(TEXTS), **near)
    np.testing.assert_allclose(ours.encode_document(TEXTS), theirs.encode_document(TEXTS), **near)
    np.testing.assert_array_equal(ours.encode(TEXTS, precision="ubinary"), theirs.encode(TEXTS, precision="ubinary"))
    assert ours.encode(TEXTS, precision="int8").dtype == np.int8
    assert ours.encode([]).shape == (0, 32)


@pytest.mark.parametrize("prompts", [{"passage": "p: "}, {"query": "q: ", "x": "x: "}, {}])
def test_a_default_prompt_is_not_for_queries(encoder, prompts):
    default = {"default_prompt_name": "x"} if "x" in prompts else {}
    folder, theirs = encoder(prompts=prompts, **default)
    ours = zoo.load(folder)
    for name in ("encode", "encode_query", "encode_document"):
        found, wanted = getattr(ours, name)(TEXTS), getattr(theirs, name)(TEXTS)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=name)


def test_encode_without_modules_is_not_normalised(tiny, library):
    folder = tiny()
    wanted = library[0].SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(zoo.load(folder).encode(TEXTS), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"convert_to_tensor": True}, r"convert_to_tensor is True: results are NumPy arrays, which torch\.from_numpy"),
        ({"device": "cuda"}, r"device is 'cuda': the device is an option of zoo\.load"),
        ({"output_value": "token_embeddings"}, "last_hidden_state"),
        ({"parallel": 4}, "processes=N of Embed"),
        ({"normalize_embedings": True}, "no option 'normalize_embedings'.*did you mean 'normalize_embeddings'"),
    ],
)
def test_options_of_peers_are_answered(embed, options, match):
    with pytest.raises(InputError, match=match):
        embed.encode("a", **options)


def test_several_processes_give_the_bits_of_one(tiny):
    embed = zoo.load(tiny(), weights="int8")
    embed.batch_tokens = 100  # many batches, which processes share
    texts = [" ".join(TEXTS[: 1 + i % 5] * (1 + i % 3)) for i in range(60)]
    options = {"normalize_embeddings": True, "truncate_dim": 16, "prompt": "of it: "}
    found = embed.encode(texts, processes=2, **options)
    np.testing.assert_array_equal(found, embed.encode(texts, **options))
    streamed = embed.stream(iter(texts), processes=2, precision="ubinary")
    np.testing.assert_array_equal(np.stack(list(streamed)), embed(texts, precision="ubinary"))
    assert embed.encode([], processes=2).shape == embed.encode([]).shape


def test_processes_that_cannot_be(embed, tiny):
    with pytest.raises(InputError, match="processes is 0, expected a whole number of at least 1"):
        embed.encode(TEXTS, processes=0)
    with pytest.raises(InputError, match=r"expected a task of zoo\.load"):
        type(embed)(embed.model, embed.tokenizer).encode(TEXTS, processes=2)


def test_a_process_that_ends_is_told(embed, monkeypatch):
    monkeypatch.setattr("zoo.tasks.embed.InProcess.__reduce__", lambda self: (Ends, ()), raising=False)
    with pytest.raises(ZooError, match="a process ended while it computed 5 texts"):
        embed.encode(TEXTS, processes=2)


class Ends:
    """In the place of what a process does: its end."""

    def __call__(self, batch):
        os._exit(1)


def test_routes_for_queries_and_documents(encoder, library, tmp_path):
    modules = library[1]
    router = modules.Router.for_query_document(
        [modules.Dense(32, 16)], [modules.Dense(32, 16, use_residual=True), modules.Normalize()]
    )
    folder, theirs = encoder(modules.LayerNorm(32), modules.Dense(32, 32, use_residual=True), router)
    ours = zoo.load(folder)
    for one in (ours, zoo.load(ours.save(tmp_path / "copy"))):
        for name in ("encode_query", "encode_document"):
            found, wanted = getattr(one, name)(TEXTS), getattr(theirs, name)(TEXTS)
            assert found.shape == (5, 16)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    settings = next(folder.glob("*_Router")) / "router_config.json"
    raw = json.loads(settings.read_text())
    raw["parameters"] = {"default_route": None, "allow_empty_key": False}
    settings.write_text(json.dumps(raw))
    with pytest.raises(InputError, match="no steps for texts of no kind, only for 'query', 'document'"):
        zoo.load(folder)(TEXTS)
    raw["parameters"]["default_route"] = "document"
    settings.write_text(json.dumps(raw))
    np.testing.assert_array_equal(zoo.load(folder)(TEXTS), ours(TEXTS, route="document"))
    raw["structure"]["query"] = ["../../elsewhere"]
    settings.write_text(json.dumps(raw))
    with pytest.raises(ConfigError, match="not the name of a folder beside it"):
        zoo.load(folder)


def test_pooling_of_layers_that_the_model_does_not_give_is_skipped(reference, library, tmp_path):
    st, modules = library
    body = modules.Transformer(str(reference("roberta", "Model")))
    parts = [body, modules.WeightedLayerPooling(32, num_hidden_layers=2, layer_start=1), modules.Pooling(32, "mean")]
    theirs = st.SentenceTransformer(modules=parts, device="cpu")
    theirs.save(str(tmp_path))
    np.testing.assert_allclose(zoo.load(tmp_path)(TEXTS), theirs.encode(TEXTS), rtol=1e-4, atol=1e-5)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "output_hidden_states": True}))
    with pytest.raises(UnsupportedError, match="output_hidden_states"):
        zoo.load(tmp_path)


def test_the_first_layout_of_sentence_transformers(encoder, library, tmp_path):
    folder, theirs = encoder(library[1].Dense(32, 8))
    old = tmp_path / "old"
    (old / "0_Transformer").mkdir(parents=True)
    for path in folder.iterdir():
        stays = path.is_dir() or path.name in ("modules.json", "config_sentence_transformers.json")
        shutil.move(path, old / path.name if stays else old / "0_Transformer" / path.name)
    listed = json.loads((old / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (old / "modules.json").write_text(json.dumps(listed))
    ours = zoo.load(old)
    np.testing.assert_allclose(ours(TEXTS), theirs.encode(TEXTS), rtol=1e-4, atol=1e-5)
    again = ours.save(tmp_path / "new")
    assert (again / "config.json").is_file()
    np.testing.assert_allclose(zoo.load(again)(TEXTS), theirs.encode(TEXTS), rtol=1e-4, atol=1e-5)
    locked = tmp_path / "zoo.lock"
    zoo.lock.lock([old], locked)
    np.testing.assert_array_equal(zoo.load(old, lock=locked)(TEXTS), ours(TEXTS))


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity_functions(encoder, name):
    folder, theirs = encoder(similarity_fn_name=name)
    ours = zoo.load(folder)
    vectors = theirs.encode(TEXTS)
    wanted = theirs.similarity(vectors[:2], vectors).numpy()
    np.testing.assert_allclose(ours.similarity(vectors[:2], vectors), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.similarity(TEXTS[:2], TEXTS), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_search_finds_what_sorting_finds(rng, block):
    corpus = rng.integers(-2, 3, (300, 6)).astype(np.float32)  # with many ties
    queries = rng.normal(size=(9, 6)).astype(np.float32)
    queries[0] = 1
    for top_k in (1, 5, 400):
        found = semantic_search(queries, corpus, top_k=top_k, similarity="dot", block=block)
        for query, hits in zip(queries, found, strict=True):
            score = [float(np.dot(query, row)) for row in corpus]
            order = sorted(range(300), key=lambda i: -score[i])[:top_k]
            np.testing.assert_allclose([hit.score for hit in hits], [score[i] for i in order], rtol=1e-5, atol=1e-6)
    whole = semantic_search(queries[0], corpus, top_k=300, similarity="dot", block=block)[0]
    assert [hit.corpus_id for hit in whole] == sorted(range(300), key=lambda i: (-corpus[i].sum(), i))


def test_search_of_a_memory_map_takes_bounded_memory(tmp_path, rng):
    corpus = np.lib.format.open_memmap(tmp_path / "corpus.npy", "w+", np.float32, (40_000, 64))
    corpus[:] = rng.normal(size=64).astype(np.float32)
    corpus[31_234] *= -1
    corpus.flush()
    corpus = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    tracemalloc.start()
    found = semantic_search(np.array(corpus[31_234]), corpus, top_k=1, block=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0][0].corpus_id == 31_234
    assert peak < 40_000 * 64 * 4 / 3


def test_search_of_texts(embed):
    hits = embed.semantic_search(TEXTS[1], TEXTS, top_k=2)
    assert isinstance(hits[0][0], Hit)
    assert hits[0][0].corpus_id == 1
    assert hits[0][0].score == pytest.approx(1, abs=1e-5)
    assert embed.semantic_search(TEXTS[1], np.zeros((0, 32), np.float32)) == [[]]
    assert embed.semantic_search([], TEXTS) == []


@pytest.mark.parametrize(
    ("queries", "corpus", "options", "match"),
    [
        (np.zeros((2, 4)), np.zeros((3, 5)), {}, "vectors of 4 and of 5 dimensions"),
        (np.zeros((2, 4)), np.full((3, 4), np.nan), {}, r"corpus\[0\] has numbers that are not finite"),
        (np.full(4, np.inf), np.zeros((3, 4)), {}, r"queries\[0\]"),
        (np.zeros((2, 4), np.int8), np.zeros((3, 4)), {}, "queries is quantised"),
        (np.zeros((2, 4, 1)), np.zeros((3, 4)), {}, r"\(2, 4, 1\), expected vectors"),
        (np.zeros((2, 4)), np.zeros((3, 4)), {"top_k": 0}, "top_k is 0"),
        (np.zeros((2, 4)), np.zeros((3, 4)), {"similarity": "cosin"}, "did you mean 'cosine'"),
    ],
)
def test_searches_that_cannot_be(queries, corpus, options, match):
    with pytest.raises(InputError, match=match):
        semantic_search(queries, corpus, **options)


def test_scores_of_far_vectors(rng):
    x = rng.normal(size=(4, 8)).astype(np.float32) + 1000
    wanted = -np.linalg.norm(x[:, None].astype(float) - x[None].astype(float), axis=-1)
    np.testing.assert_allclose(scores(x, x, "euclidean"), wanted, atol=1e-3)


@pytest.mark.parametrize("act", ["Sigmoid", "Identity", "Tanh", "ReLU", "SiLU", "Softplus", "LogSigmoid"])
def test_scores_of_cross_encoders(tiny, act):
    torch = pytest.importorskip("torch")
    folder = tiny("ForSequenceClassification", num_labels=1)
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"activation_fn": f"torch.nn.modules.activation.{act}"}))
    rerank = zoo.load(folder)
    pairs = [("a cat", "a kitten"), ("a cat", "the sea and the sky"), ("x", "y")]
    logits = rerank.predict(pairs, raw=True)
    wanted = getattr(torch.nn, act)()(torch.from_numpy(logits)).numpy()
    np.testing.assert_allclose(rerank.predict(pairs), wanted, rtol=1e-5, atol=1e-6)
    ranked = rerank("a cat", ["a kitten", "the sea and the sky"], raw=True)
    np.testing.assert_allclose([r.score for r in sorted(ranked)], logits[:2], rtol=1e-5, atol=1e-6)


def test_pairs_that_are_none(tiny):
    rerank = zoo.load(tiny("ForSequenceClassification", num_labels=1))
    assert rerank.predict([]).shape == (0,)
    for pairs in (["ab"], [("a", "b", "c")], [("a", 1)]):
        with pytest.raises(InputError, match=r"pairs\[0\]"):
            rerank.predict(pairs)
