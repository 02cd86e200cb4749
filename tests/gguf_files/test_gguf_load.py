"""GGUF files through the front door, beside the checkpoints that they were made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_gguf import OWN, gguf, permuted, write_llama

import zoo
from zoo.errors import ConfigError, InputError, NotFoundError, UnsupportedError, ZooError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.weights.files import open_weights
from zoo.weights.gguf.header import read_header
from zoo.weights.gguf.source import GGUFFile


def random_llama(folder: Path, **changes: object) -> Path:
    """A checkpoint with another number of heads for keys than for queries, and heads of a size of their own."""
    raw = json.loads((OWN / "config.json").read_text())
    config = LlamaConfig.from_dict({**raw, "num_hidden_layers": 2, "max_position_embeddings": 96, **changes})
    zoo.save(LlamaForCausalLM.from_config(config, seed=3), folder)
    shutil.copy(OWN / "tokenizer.json", folder)
    return folder


def test_a_llama_says_the_same(stories):
    ours, theirs = zoo.load(stories), zoo.load("stories260k")
    ids = np.array([theirs.tokenizer.backend.encode("Once upon a time there was").ids])
    np.testing.assert_allclose(ours.model(ids), theirs.model(ids), rtol=0, atol=1e-6)
    assert ours("Lily", max_new_tokens=40) == theirs("Lily", max_new_tokens=40)
    assert not ours.report.unused
    assert ours.report.tied == theirs.report.tied
    assert ours.config.rms_norm_eps == theirs.config.rms_norm_eps


def test_a_sentence_encoder_says_the_same(sentences, minilm):
    ours, theirs = zoo.load(sentences), zoo.load(minilm)
    texts = ["The cat sits outside.", "Ünïcode 日本語, hello!", ""]
    np.testing.assert_allclose(ours(texts), theirs(texts), rtol=0, atol=1e-6)
    assert ours.encoder.pooling == ("mean",)
    assert type(ours).__name__ == "Embed"


def test_the_bare_model_and_other_heads(sentences, minilm):
    ids = np.array([[101, 2026, 102]])
    ours, theirs = load_model(sentences), load_model(minilm)
    np.testing.assert_allclose(ours(ids).last_hidden_state, theirs(ids).last_hidden_state, atol=1e-6)
    with pytest.raises(ZooError, match=r"pooler|classifier"):
        load_model(sentences, head="ForSequenceClassification")


def test_every_tensor_is_what_it_was(stories):
    theirs, ours = open_weights(OWN), GGUFFile(stories)
    assert set(ours.names()) == set(theirs.names()) - {"lm_head.weight"}
    for name in ours.names():
        np.testing.assert_array_equal(ours.read(name).array, theirs.read(name).array)
        assert ours.shape(name) == theirs.shape(name)


def test_queries_and_keys_are_in_another_order(stories):
    """As the file has them they are others: a file that is not put back would say something else."""
    header, ours = read_header(stories), GGUFFile(stories)
    for theirs, name, heads in (("attn_q", "q_proj", 8), ("attn_k", "k_proj", 4)):
        begin, end = header.tensors[f"blk.0.{theirs}.weight"][2:4]
        stored = header.data[0][begin:end].view("<f4").reshape(-1, 64)
        found = ours.read(f"model.layers.0.self_attn.{name}.weight").array
        assert not np.array_equal(stored, found)
        np.testing.assert_array_equal(stored, permuted(found, heads))


def test_tensors_are_read_as_the_package_reads_them(stories):
    header, reader = read_header(stories), gguf.GGUFReader(stories)
    assert list(header.tensors) == [t.name for t in reader.tensors]
    for tensor in reader.tensors:
        entry = header.tensors[tensor.name]
        assert entry.shape == tuple(reversed(tensor.shape.tolist()))
        assert (entry.begin, entry.dtype) == (tensor.data_offset, tensor.tensor_type.name)
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert header.metadata.keys() == fields.keys()
    for key, value in fields.items():
        found = header.metadata[key]
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == value


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_halves_stay_as_they_are(kind, tmp_path):
    """On NumPy they are widened in use, as those of a safetensors file are."""
    folder = random_llama(tmp_path / "folder")
    zoo.save(load_model(folder), tmp_path / "half", dtype={"F16": "float16", "BF16": "bfloat16"}[kind])
    shutil.copy(OWN / "tokenizer.json", tmp_path / "half")
    ours = load_model(write_llama(tmp_path / "half", tmp_path / "half.gguf", kind))
    theirs = load_model(tmp_path / "half")
    ids = np.arange(3, 40)[None]
    np.testing.assert_allclose(ours(ids), theirs(ids), rtol=0, atol=1e-5)


def test_a_head_that_is_not_tied_and_heads_of_another_size(tmp_path):
    sizes = {"head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
    folder = random_llama(tmp_path / "folder", tie_word_embeddings=False, **sizes)
    more = {
        f"llama__{key}": 16 for key in ("attention__key_length", "attention__value_length", "rope__dimension_count")
    }
    ours, theirs = load_model(write_llama(folder, tmp_path / "m.gguf", **more)), load_model(folder)
    ids = np.arange(3, 40)[None]
    np.testing.assert_allclose(ours(ids), theirs(ids), rtol=0, atol=1e-6)
    assert not ours.report.tied


SCALINGS = {
    "linear": (
        {"llama__rope__scaling__type": "linear", "llama__rope__scaling__factor": 4.0},
        {"rope_type": "linear", "factor": 4.0},
    ),
    "linear of old": ({"llama__rope__scale_linear": 4.0}, {"rope_type": "linear", "factor": 4.0}),
    "yarn": (
        {
            "llama__rope__scaling__type": "yarn",
            "llama__rope__scaling__factor": 4.0,
            "llama__rope__scaling__original_context_length": 24,
        },
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24},
    ),
    "none": ({"llama__rope__scaling__type": "none", "llama__rope__scaling__finetuned": True}, None),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_scaled_positions(name, tmp_path):
    said, scaling = SCALINGS[name]
    folder = random_llama(tmp_path / "folder", rope_scaling=scaling)
    ours, theirs = load_model(write_llama(folder, tmp_path / "m.gguf", **said)), load_model(folder)
    assert ours.config.rope().frequencies(0) == theirs.config.rope().frequencies(0)
    assert (ours.config.rope().scale, ours.config.max_positions) == (
        theirs.config.rope().scale,
        theirs.config.max_positions,
    )


def factors_of(theta: float, size: int, factor: float, low: float, high: float, context: int) -> np.ndarray:
    """By which llama.cpp's converter divides the frequencies of Llama 3."""
    wavelengths = 2 * np.pi * theta ** (np.arange(0, size, 2) / size)
    smooth = (context / wavelengths - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    return np.where(wavelengths < context / high, 1, np.where(wavelengths > context / low, factor, between))


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_the_scaling_of_llama_3_is_told_from_its_factors(factor, tmp_path, monkeypatch):
    scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling |= {"original_max_position_embeddings": 8192}
    changes = {"rope_theta": 500000.0, "head_dim": 64, "num_attention_heads": 1, "num_key_value_heads": 1}
    folder = random_llama(tmp_path / "folder", **changes, rope_scaling=scaling, max_position_embeddings=131072)
    add_tensor = gguf.GGUFWriter.add_tensor
    numbers = factors_of(500000.0, 64, factor, 1, 4, 8192).astype(np.float32)

    def with_factors(writer, name, *rest, **options):
        if name == "token_embd.weight":
            add_tensor(writer, "rope_freqs.weight", numbers)
        add_tensor(writer, name, *rest, **options)

    monkeypatch.setattr(gguf.GGUFWriter, "add_tensor", with_factors)
    more = {
        f"llama__{key}": 64 for key in ("attention__key_length", "attention__value_length", "rope__dimension_count")
    }
    ours = load_model(write_llama(folder, tmp_path / "m.gguf", **more))
    assert ours.config.rope_scaling == scaling
    assert ours.config.rope().frequencies(0) == load_model(folder).config.rope().frequencies(0)
    assert not ours.report.unused
    numbers *= 1.5
    with pytest.raises(UnsupportedError, match=r"rope_freqs\.weight is not Llama 3's scaling"):
        load_model(write_llama(folder, tmp_path / "m.gguf", **more))


WRONG = {
    "another architecture": ({"general__architecture": "rwkv6"}, "'rwkv6', which is not implemented, only llama, "),
    "one that is nearly known": ({"general__architecture": "lama"}, "did you mean 'llama'"),
    "an encoder of images": (
        {"general__architecture": "clip"},
        "mmproj.*: load that file, MODEL.gguf",
    ),
    "no architecture": ({"general__architecture": None}, "not stated"),
    "experts": ({"llama__expert_count": 8}, "the metadata has no 'llama.expert_used_count'"),
    "an unknown key": ({"llama__logit_scale": 0.5}, r"llama\.logit_scale = 0.5 is not implemented"),
    "a window": ({"llama__attention__sliding_window": 16}, "sliding_window = 16"),
    "another part of heads turned": ({"llama__rope__dimension_count": 4}, "rope.dimension_count = 4"),
    "longrope": ({"llama__rope__scaling__type": "longrope"}, "'longrope' is not implemented, only none, linear, yarn"),
    "no width": ({"llama__embedding_length": None}, "no 'llama.embedding_length', a whole number"),
    "no layers": ({"llama__block_count": None}, "no 'llama.block_count'"),
    "no epsilon": ({"llama__attention__layer_norm_rms_epsilon": None}, "layer_norm_rms_epsilon', a number"),
    "layers of several widths": ({"llama__feed_forward_length": [172, 96]}, "feed_forward_length is an array of 2"),
    "a text for a number": ({"llama__context_length": "512"}, "context_length is '512', expected a whole number"),
    "no heads": ({"llama__attention__head_count": 0}, "head_count"),
    "a number of heads that does not divide": (
        {"llama__attention__head_count": 7},
        "dimension_count = 8 is not implemented, only 9",
    ),
    "another width than the tensors": ({"llama__embedding_length": 32, "llama__rope__dimension_count": 4}, "has shape"),
    "2^31 layers": ({"llama__block_count": 2**31}, "block_count|num_hidden_layers"),
    "a tokenizer of another kind": ({"tokenizer__ggml__model": "rwkv"}, "'rwkv', which is not implemented"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name, tmp_path):
    said, message = WRONG[name]
    path = write_llama(OWN, tmp_path / "m.gguf", **said)
    with pytest.raises(ZooError, match=message) as error:
        zoo.load(path)
    assert isinstance(error.value, ConfigError | UnsupportedError) or "shape" in message or "tokenizer" in name
    assert str(path) in str(error.value)


def test_paths(stories, tmp_path, monkeypatch):
    shutil.copy(stories, tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    for said in ("model.gguf", "./model.gguf", tmp_path / "model.gguf"):
        assert zoo.load(said).name == "generate"
    (tmp_path / "link.gguf").symlink_to(stories)
    assert zoo.load("link.gguf").name == "generate"
    with pytest.raises(NotFoundError, match=r"no folder 'modle.gguf'; did you mean 'model.gguf'"):
        zoo.load("modle.gguf")
    with pytest.raises(NotFoundError, match=r"has no config.json: did you mean the file, .*link\.gguf"):
        zoo.load(tmp_path)
    with pytest.raises(ZooError, match="only hub names have revisions"):
        zoo.load("model.gguf", revision="main")


def test_no_file_is_written_and_the_header_is_read_once(stories, monkeypatch):
    import tempfile

    from zoo.weights.gguf import parts

    count = []
    monkeypatch.setattr(tempfile, "tempdir", str(stories.parent / "none"))
    monkeypatch.setattr(parts, "read_header", lambda path: (count.append(path), read_header(path))[1])
    task = zoo.load(stories)
    assert count == [stories]
    assert task.checkpoint.folder == stories.parent
    assert task.checkpoint.files == (stories.name,)
    contents = task.checkpoint.contents
    assert contents.names() == ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
    assert json.loads(contents.read("config.json"))["model_type"] == "llama"
    assert json.loads(contents.read("tokenizer.json")) == contents.json("tokenizer.json")
    with pytest.raises(NotFoundError, match=rf"{stories.name} has no vocab\.txt"):
        contents.read("vocab.txt")


def test_what_is_beside_the_file_is_not_read(stories, tmp_path):
    """A folder with a GGUF file may hold the files of another checkpoint."""
    from zoo.lock import lock

    shutil.copy(stories, tmp_path / "model.gguf")
    (tmp_path / "modules.json").write_text("[")
    (tmp_path / "generation_config.json").write_text("[")
    assert zoo.load(tmp_path / "model.gguf").name == "generate"
    (entry,) = lock([tmp_path / "model.gguf"], tmp_path / "lock").values()
    assert entry.files.keys() == {"model.gguf"}


def test_a_sentence_encoder_is_saved_as_a_folder(sentences, tmp_path):
    zoo.save(zoo.load(sentences), tmp_path / "saved")
    assert (tmp_path / "saved" / "1_Pooling" / "config.json").is_file()
    np.testing.assert_array_equal(zoo.load(tmp_path / "saved")("a"), zoo.load(sentences)("a"))


def test_saved_as_a_folder(stories, tmp_path):
    task = zoo.load(stories)
    zoo.save(task, tmp_path / "saved")
    again = zoo.load(tmp_path / "saved")
    assert again("Once upon a time", max_new_tokens=20) == task("Once upon a time", max_new_tokens=20)


def test_a_lock_holds_the_file(stories, tmp_path, monkeypatch):
    from zoo.lock import check, lock

    shutil.copy(stories, tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    entries = lock(["model.gguf"])
    assert list(entries["model.gguf"].files) == ["model.gguf"]
    assert zoo.load("model.gguf", lock="zoo.lock").report.fingerprint == entries["model.gguf"].fingerprint
    assert check() == {"model.gguf": []}
    data = bytearray((tmp_path / "model.gguf").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(ZooError, match="has sha256"):
        zoo.load("model.gguf", lock="zoo.lock")


def test_parity_is_for_files_of_transformers(stories):
    pytest.importorskip("torch", reason="needs torch, for the reference")
    from parity.cases import Case
    from parity.run import run

    with pytest.raises(InputError, match=r"stories.gguf is a GGUF file, expected a folder or a name of the Hub"):
        run(Case(str(stories)))
