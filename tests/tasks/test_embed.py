"""Embed against sentence-transformers, on the real MiniLM and on every module that zoo knows."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError

TEXTS = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "",
    "Zürich, Ωmega ΣΑΣ, 東京 and 😀 in one line",
    "a long text, " * 200,
    "short",
]


@pytest.fixture(scope="module")
def embed(minilm):
    return zoo.load(minilm)


def test_minilm_has_the_published_similarities(embed):
    # From the README of sentence-transformers 6.2.0.
    expected = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(embed.similarity(TEXTS[:3]), expected, atol=6e-5)
    np.testing.assert_allclose(embed.similarity(embed(TEXTS[:3]), TEXTS[0])[:, 0], expected[0], atol=6e-5)


@pytest.mark.filterwarnings("ignore:.*cut there")
def test_minilm_equals_sentence_transformers(embed, minilm):
    st = pytest.importorskip("sentence_transformers")
    ours, theirs = embed(TEXTS), st.SentenceTransformer(str(minilm), device="cpu").encode(TEXTS)
    assert ours.shape == (len(TEXTS), 384)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


@pytest.mark.filterwarnings("ignore:.*cut there")
def test_saved_is_loaded_as_the_same_task(embed, tmp_path):
    again = zoo.load(zoo.save(embed, tmp_path / "copy"))
    np.testing.assert_allclose(again(TEXTS), embed(TEXTS), rtol=1e-5, atol=1e-6)
    assert again.max_tokens == embed.max_tokens == 256


def test_a_text_that_is_cut_is_warned_of_at_the_callers_line(embed):
    with pytest.warns(UserWarning, match="1 of 2 texts had more than 256 tokens") as caught:
        embed(["x " * 300, "y"])
    assert [w.filename for w in caught if w.category is UserWarning] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        embed("x " * 254)


MODULES = {
    "mean": ("mean",),
    "cls": ("cls",),
    "max": ("max",),
    "sqrt": ("mean_sqrt_len_tokens",),
    "weighted": ("weightedmean",),
    "last": ("lasttoken",),
    "several": ("mean", "cls", "max"),
}


@pytest.fixture(scope="module")
def sentence_encoder(reference, tmp_path_factory):
    """`sentence_encoder(modes, dense, **pooling)`: the folder that sentence-transformers writes, and its model."""
    st = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    body = reference("roberta", "Model")

    def make(modes, dense=None, normalize=False, **options):
        parts = [modules.Transformer(str(body)), modules.Pooling(32, modes, **options)]
        if dense:
            parts.append(modules.Dense(32 * len(modes), 16, **dense))
        if normalize:
            parts.append(modules.Normalize())
        model = st.SentenceTransformer(modules=parts, prompts={"query": "find this: "}, device="cpu")
        folder = tmp_path_factory.mktemp("encoder")
        model.save(str(folder))
        return folder, model

    return make


@pytest.mark.filterwarnings("ignore:.*cut there")
@pytest.mark.parametrize(
    ("modes", "include_prompt"),
    [  # "several" shows what three modes do with a prompt; each of them alone at night
        pytest.param(
            modes,
            include,
            id=f"{name}-{include}",
            marks=[pytest.mark.nightly] * (name in MODULES["several"]),
        )
        for name, modes in MODULES.items()
        for include in (True, False)
    ],
)
def test_pooling_with_prompts(sentence_encoder, modes, include_prompt):
    folder, theirs = sentence_encoder(modes, include_prompt=include_prompt)
    ours = zoo.load(folder)
    np.testing.assert_allclose(ours(TEXTS), theirs.encode(TEXTS), rtol=1e-4, atol=1e-5)
    query = theirs.encode(TEXTS, prompt_name="query")
    np.testing.assert_allclose(ours(TEXTS, prompt_name="query"), query, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ours(TEXTS, prompt="find this: "), ours(TEXTS, prompt_name="query"))


OFTEN = {"Tanh", "GELU", "Identity"}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(act, marks=[pytest.mark.nightly] * (act not in OFTEN))
        for act in ("Tanh", "ReLU", "GELU", "Identity", "Sigmoid", "SiLU")
    ],
)
def test_dense(sentence_encoder, act, tmp_path):
    nn = pytest.importorskip("torch").nn
    folder, theirs = sentence_encoder(
        ("mean", "cls"), dense={"activation_function": getattr(nn, act)(), "bias": act != "GELU"}, normalize=True
    )
    ours = zoo.load(folder)
    np.testing.assert_allclose(ours(TEXTS[:5]), theirs.encode(TEXTS[:5]), atol=1e-5)
    np.testing.assert_allclose(zoo.load(ours.save(tmp_path / "copy"))(TEXTS[:5]), ours(TEXTS[:5]), rtol=1e-5, atol=1e-6)


def test_flags_of_old_and_lower_case(sentence_encoder):
    st = pytest.importorskip("sentence_transformers")
    folder, _ = sentence_encoder(("mean",))
    flags = {"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 32, **flags}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": True}))
    theirs = st.SentenceTransformer(str(folder), device="cpu")
    with pytest.warns(UserWarning, match="more than 20 tokens"):
        ours = zoo.load(folder)(TEXTS)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS), rtol=1e-4, atol=1e-5)


def test_without_modules_the_mean_is_normalised(tiny):
    embed = zoo.load(tiny())
    batch = embed.tokenizer(TEXTS[:3])
    x = embed.model(batch.input_ids, batch.attention_mask).last_hidden_state
    mean = np.stack([row[mask].mean(axis=0) for row, mask in zip(x, batch.attention_mask, strict=True)])
    np.testing.assert_allclose(embed(TEXTS[:3], normalize=False), mean, rtol=1e-4, atol=1e-6)
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(embed(TEXTS[:3]), unit, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(embed(TEXTS[:3], pooling="cls", normalize=False), x[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("modules.json", [{"type": "mine.Pooling", "path": ""}], "code of its own"),
        ("modules.json", [{"type": "sentence_transformers.models.LSTM", "path": ""}], None),
        ("1_Pooling/config.json", {"pooling_mode": "meen"}, "'meen' is not implemented.*'mean'"),
        ("1_Pooling/config.json", {"embedding_dimension": 64}, "embedding_dimension = 64"),
        ("sentence_bert_config.json", {"query_length": 32}, "query_length"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "SparseEncoder"),
    ],
)
def test_what_is_not_implemented_is_refused(tiny, name, content, match):
    folder = tiny()
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "mean"}')
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    zoo.load(folder)
    if match is None:
        content, match = [*modules, *content], "'LSTM' is not implemented"
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(UnsupportedError, match=match):
        zoo.load(folder)


def test_an_unknown_prompt_or_pooling(embed):
    with pytest.raises(InputError, match="prompt_name is 'query'"):
        embed("a", prompt_name="query")
    with pytest.raises(InputError, match=r"pooling is 'meen'.*did you mean 'mean'"):
        embed("a", pooling="meen")


@pytest.mark.parametrize("modules", ['[], "a": 1', "{}", "[1]", ""])
def test_modules_that_are_no_list_of_objects(tiny, modules):
    folder = tiny()
    (folder / "modules.json").write_text(modules)
    with pytest.raises(ConfigError, match=r"modules\.json"):
        zoo.load(folder)


@pytest.mark.parametrize(("dtype", "size"), [("f4", 1e25), ("f8", 1e200), ("f2", 1e4), ("f4", 1.0)])
def test_similarity_of_vectors_of_any_size(tiny, rng, dtype, size):
    embed = zoo.load(tiny())
    x = rng.normal(size=(5, 32))
    wanted = x / np.linalg.norm(x, axis=1, keepdims=True)
    found = embed.similarity((x * size).astype(dtype))
    np.testing.assert_allclose(found, wanted @ wanted.T, atol=1e-3 if dtype == "f2" else 1e-6)
