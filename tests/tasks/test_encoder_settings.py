"""Every key of sentence-transformers' files: the same vectors as the library's, or a refusal that names the key."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.typing import RawTensor
from zoo.weights.safetensors import write_safetensors

SETTINGS, BERT, POOLING = "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json"
TEXTS = ["The weather is lovely today.", "It's SO sunny [MASK] outside!", "", "Zürich, Ωmega ΣΑΣ, 東京", "a " * 40]


@pytest.fixture(scope="module")
def layout(reference):
    """`layout(kind, files)`: the folder of an encoder whose files say what is given beside the least."""
    body = {}

    def make(path, kind="bert-cased", modules=("Pooling",), **files):
        if kind not in body:
            body[kind] = reference(kind, "Model")
        for file in body[kind].iterdir():
            (path / file.name).write_bytes(file.read_bytes())
        listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        for i, name in enumerate(modules, 1):
            folder = f"{i}_{name}"
            listed.append({"idx": i, "name": str(i), "path": folder, "type": f"sentence_transformers.models.{name}"})
            (path / folder).mkdir()
        (path / "modules.json").write_text(json.dumps(listed))
        least = {POOLING: {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}}
        for name, content in {**least, **files}.items():
            (path / name).write_text(json.dumps(content))
        return path

    return make


def both(path):
    st = pytest.importorskip("sentence_transformers")
    return zoo.load(path), st.SentenceTransformer(str(path), device="cpu")


def assert_equal(ours, theirs):
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*cut there")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        (SETTINGS, {"truncate_dim": 8}),
        (SETTINGS, {"truncate_dim": 300}),
        (SETTINGS, {"prompts": {"query": "Find: ", "document": None}, "default_prompt_name": "query"}),
        (SETTINGS, {"similarity_fn_name": "euclidean", "__version__": {"pytorch": "2"}, "requirements": None}),
        (BERT, {"max_seq_length": 12}),
        (BERT, {"max_seq_length": 12, "tokenizer_args": {"model_max_length": 9}}),
        (BERT, {"do_lower_case": True}),
        (BERT, {"model_args": {"attn_implementation": "eager"}, "config_kwargs": {}, "unpad_inputs": False}),
        ("sentence_camembert_config.json", {"max_seq_length": 12}),
        ("sentence_albert_config.json", {"max_seq_length": 12}),
        ("sentence_xlnet_config.json", {"max_seq_length": 12}),
        (POOLING, {"embedding_dimension": 32, "pooling_mode": ["cls", "lasttoken"]}),
        (POOLING, {"word_embedding_dimension": 32, "pooling_mode": "max", "pooling_mode_cls_token": True}),
        (POOLING, {"word_embedding_dimension": 32, "pooling_mode_cls_token": False}),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)
def test_vectors_are_the_librarys(layout, tmp_path, name, content):
    ours, theirs = both(layout(tmp_path, **{name: content}))
    assert_equal(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert ours.size == theirs.get_embedding_dimension()
    assert_equal(ours.encode_query(TEXTS), theirs.encode_query(TEXTS))
    assert_equal(ours.encode_document(TEXTS), theirs.encode_document(TEXTS))
    scores = ours.similarity(TEXTS[:2], TEXTS[2:])
    assert_equal(scores, theirs.similarity(theirs.encode(TEXTS[:2]), theirs.encode(TEXTS[2:])).numpy())


@pytest.mark.parametrize("unit", [False, True])
def test_truncate_dim_of_a_call_and_of_the_checkpoint(layout, tmp_path, unit):
    modules = ("Pooling", "Normalize") if unit else ("Pooling",)
    ours, theirs = both(layout(tmp_path, modules=modules, **{SETTINGS: {"truncate_dim": 8}}))
    texts = TEXTS[:3]
    for given in (None, 4, 8, 20, 32):
        for normalize in (False, True):
            options = {"truncate_dim": given, "normalize_embeddings": normalize}
            assert_equal(ours.encode(texts, **options), theirs.encode(texts, **options))
    assert ours.encode([]).shape == ours([]).shape == (0, 8)
    assert ours([], truncate_dim=20).shape == (0, 20)
    assert ours("a", pooling="cls").shape == (32,)  # another vector than the one that the checkpoint cuts short
    assert np.stack(list(ours.stream(texts))).shape == (3, 8)
    assert ours(texts, precision="binary").shape == (3, 1)
    with pytest.raises(InputError, match=r"truncate_dim is 33, expected 1 \.\.\. 32"):
        ours("a", truncate_dim=33)
    saved = zoo.load(zoo.save(ours, tmp_path / "saved"))
    np.testing.assert_array_equal(saved(texts), ours(texts))


@pytest.mark.parametrize("include", [True, False])
def test_a_prompt_that_is_not_pooled_in_small_letters(layout, tmp_path, include):
    pooling = {"word_embedding_dimension": 32, "pooling_mode": "weightedmean", "include_prompt": include}
    settings = {"prompts": {"query": "FIND [SEP] this: "}}
    files = {POOLING: pooling, SETTINGS: settings, BERT: {"do_lower_case": True}}
    ours, theirs = both(layout(tmp_path, **files))
    assert_equal(ours.encode_query(TEXTS[:4]), theirs.encode_query(TEXTS[:4]))


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        (SETTINGS, {"truncate_dim": 0}, "truncate_dim = 0, expected a whole number"),
        (SETTINGS, {"truncate_dim": "8"}, "truncate_dim = '8'"),
        (SETTINGS, {"prompts": {"a": 1}}, "prompts is not an object of texts"),
        (SETTINGS, {"prompts": {"a": None}, "default_prompt_name": "a"}, "default_prompt_name 'a' is not one of"),
        (SETTINGS, {"similarity_fn_name": "hamming"}, "similarity_fn_name 'hamming'"),
        (BERT, {"tokenizer_name_or_path": "other"}, "tokenizer_name_or_path = 'other'"),
        (BERT, {"config_args": {"is_decoder": True}}, "config_args = .*is_decoder"),
        (BERT, {"model_kwargs": {"subfolder": "x"}}, "model_kwargs = .*subfolder"),
        (BERT, {"processor_kwargs": {"do_lower_case": True}}, "processor_kwargs = .*do_lower_case"),
        (BERT, {"do_lower_case": "yes"}, "do_lower_case = 'yes', expected true or false"),
        (BERT, {"module_output_name": "sentence_embedding"}, "module_output_name = 'sentence_embedding'"),
        (BERT, {"transformer_task": "fill-mask"}, "transformer_task is 'fill-mask'"),
        (BERT, {"modality_config": {"text": {"method": "get_text_features"}}}, "modality_config: text = "),
        (BERT, {"modality_config": {"image": {"method": "forward"}}}, "modality_config = .*has no text"),
        (POOLING, {"pooling_mode_eos_token": True}, "pooling_mode_eos_token is not a setting of this module"),
        (POOLING, {"include_prompt": "no"}, "include_prompt = 'no', expected true or false"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(layout, tmp_path, name, content, match):
    with pytest.raises((ConfigError, UnsupportedError), match=match):
        zoo.load(layout(tmp_path, **{name: content}))


@pytest.mark.parametrize("name", [SETTINGS, BERT])
def test_a_key_that_the_library_ignores_is_warned_of(layout, tmp_path, name):
    with pytest.warns(UserWarning, match=f"{name}: matryoshka is not a setting of sentence-transformers"):
        ours = zoo.load(layout(tmp_path, **{name: {"matryoshka": 8}}))
    assert ours("a").shape == (32,)


@pytest.mark.parametrize("config", [{"in_features": 32, "out_features": 4, "dropout": 1}, {"dimension": 32, "eps": 1}])
def test_keys_of_the_modules_after_pooling(layout, tmp_path, config):
    kind = "Dense" if "in_features" in config else "LayerNorm"
    path = layout(tmp_path, modules=("Pooling", kind), **{f"2_{kind}/config.json": config})
    shapes = {"linear.weight": (4, 32), "linear.bias": (4,)} if kind == "Dense" else {"norm.weight": (32,)}
    tensors = {name: RawTensor(np.ones(shape, np.float32), "F32") for name, shape in shapes.items()}
    write_safetensors(path / f"2_{kind}/model.safetensors", tensors)
    if kind == "LayerNorm":
        with pytest.raises(UnsupportedError, match="eps is not a setting of this module"):
            zoo.load(path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zoo.load(path)
    assert [w for w in caught if "dropout is not a setting" in str(w.message)]
