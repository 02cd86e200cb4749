"""Models written as GGUF: what the `gguf` package reads, and what zoo loads with equal results."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from made_gguf import OWN, gguf, write_llama

import zoo
from zoo.apps.cli import main
from zoo.apps.gguf_export.export import SUBSTITUTE_TYPES, TYPES, export
from zoo.apps.gguf_export.k_blocks import encode
from zoo.errors import UnsupportedError
from zoo.loading import load_model
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.nn import leaves
from zoo.quant import QuantTensor
from zoo.tasks.embed import Embed
from zoo.tasks.generate import Generate
from zoo.weights.gguf.header import read_header
from zoo.weights.gguf.source import read_entry

IDS = np.array([[1, 403, 407, 261, 378, 285, 291]])
# What is lost of logits that go to 20 or so, on the real stories260K.
LOST = {"f32": 0, "f16": 0.04, "bf16": 0.3, "q8_0": 0.8, "q5_1": 5, "q5_0": 5, "q4_1": 9, "q4_0": 12}
LOST |= {kind: LOST[instead] for kind, instead in SUBSTITUTE_TYPES.items()}  # its rows are of 64 and 172 numbers


@pytest.mark.parametrize("kind", TYPES)
def test_a_llama_goes_there_and_back(kind, tmp_path):
    task = zoo.load("stories260k")
    path = export(task, tmp_path / "m.gguf", kind)
    again, wide = zoo.load(path), load_model(path, dtype="float32")
    np.testing.assert_allclose(again.model(IDS), wide(IDS), rtol=0, atol=3e-4 if kind == "f32" else 2e-4)
    lost = np.abs(again.model(IDS) - task.model(IDS)).max()
    assert lost <= LOST[kind]
    assert (lost > 0) == (kind != "f32")
    assert again.generation.eos_token_id == task.generation.eos_token_id
    assert again.tokenizer("Ünï <s> x").input_ids.tolist() == task.tokenizer("Ünï <s> x").input_ids.tolist()


def with_tokenizer(spec, folder):
    """A random checkpoint with a tokenizer, and its config."""
    from parity.checkpoints import build
    from parity.vocabularies import write_bpe

    config = json.loads((build(spec, folder) / "config.json").read_text())
    write_bpe(folder, config["vocab_size"], config["max_position_embeddings"], named=True)
    return folder, config


@pytest.mark.parametrize("spec", ["Qwen2.5-0.5B", "Qwen3-0.6B"])
def test_a_qwen_goes_there_and_back(spec, tmp_path):
    """Their rows are in transformers' order, unlike Llama's; Qwen2 has biases, Qwen3 norms of queries and keys."""
    folder, config = with_tokenizer(spec, tmp_path / "folder")
    task = zoo.load(folder, dtype="float32")
    ids = np.arange(5, 17)[None]
    for kind, lost in {"f32": 1e-5, "q8_0": 0.05}.items():
        path = export(task, tmp_path / f"{kind}.gguf", kind)
        again = zoo.load(path)
        assert (again.config.model_type, again.model.architecture) == (task.config.model_type, task.model.architecture)
        found, wanted = np.asarray(again.model(ids)), np.asarray(task.model(ids))
        assert np.linalg.norm(found - wanted) <= lost * np.linalg.norm(wanted)
        assert again.tokenizer("of it").input_ids.tolist() == task.tokenizer("of it").input_ids.tolist()
    (folder / "config.json").write_text(
        json.dumps(
            {**config, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0, "layer_types": None}
        )
    )
    with pytest.raises(UnsupportedError, match="whose attention is within a window cannot be written as GGUF"):
        export(zoo.load(folder), tmp_path / "windows.gguf", "f32")


def test_a_mistral_is_refused_by_its_name(tmp_path):
    task = zoo.load(with_tokenizer("Mistral-7B-v0.1", tmp_path / "folder")[0])
    with pytest.raises(UnsupportedError, match="MistralForCausalLM cannot be written as GGUF"):
        export(task, tmp_path / "m.gguf")


@pytest.mark.parametrize("kind", TYPES)
def test_the_package_reads_it(kind, tmp_path):
    """Tensor by tensor: its reader and its numbers are llama.cpp's."""
    task = zoo.load("stories260k")
    path = export(task, tmp_path / "m.gguf", kind)
    reader, wanted = gguf.GGUFReader(path), gguf.GGUFReader(write_llama(OWN, tmp_path / "f32.gguf"))
    theirs = {t.name: t for t in wanted.tensors}
    assert {t.name for t in reader.tensors} == set(theirs)
    kinds = set()
    for tensor in reader.tensors:
        exact = theirs[tensor.name].data.reshape(tuple(reversed(theirs[tensor.name].shape.tolist())))
        found = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        error = np.abs(found - exact).max() / np.abs(exact).max()
        assert error <= {"F32": 0, "F16": 1e-3, "BF16": 4e-3, "Q8_0": 5e-3}.get(tensor.tensor_type.name, 0.13)
        kinds.add(tensor.tensor_type.name)
        if exact.ndim == 2 and tensor.tensor_type.name not in ("F32", "F16", "BF16"):
            # And the very blocks that the package makes of what the converter gives it.
            np.testing.assert_array_equal(tensor.data, gguf.quants.quantize(exact, tensor.tensor_type))
    assert kinds - {"F32", "F16"} == {SUBSTITUTE_TYPES.get(kind, kind).upper()} - {"F32", "F16"}
    fields = {name: field.contents() for name, field in reader.fields.items()}
    assert fields["general.architecture"] == "llama"
    assert fields["llama.attention.head_count_kv"] == 4
    assert json.loads(fields["tokenizer.huggingface.json"])["model"]["type"] == "BPE"
    ours = {name: field.contents() for name, field in wanted.fields.items()}
    for name in ("tokens", "scores", "token_type"):
        assert fields[f"tokenizer.ggml.{name}"] == ours[f"tokenizer.ggml.{name}"]


@pytest.mark.parametrize("kind", ["f32", "q8_0", "q4_0"])
def test_a_sentence_encoder_goes_there_and_back(kind, minilm, sentences, tmp_path):
    task = zoo.load(minilm)
    path = export(task, tmp_path / "m.gguf", kind)
    again = zoo.load(path)
    assert isinstance(again, Embed)
    texts = ["The cat sits outside.", "Ünïcode 日本語, hello!", "a " * 400]
    with pytest.warns(UserWarning, match="256 tokens"):
        cosines = (again(texts) * task(texts)).sum(axis=1)
    assert (cosines > {"f32": 1 - 1e-6, "q8_0": 0.999, "q4_0": 0.9}[kind]).all()
    assert not again.report.unused
    ours, theirs = read_header(path).metadata, read_header(sentences).metadata
    for name in ("tokens", "token_type"):
        a, b = ours[f"tokenizer.ggml.{name}"], theirs[f"tokenizer.ggml.{name}"]
        assert list(a) == list(b)


def test_without_the_whole_tokenizer_it_is_rebuilt(chat, texts, tmp_path, monkeypatch):
    """The tokenizer that llama.cpp reads from an exported file equals the file's tokenizer.json."""
    folder, _ = chat
    task = zoo.load(folder)
    add_string = gguf.GGUFWriter.add_string

    def without(writer, key, value):
        if key != "tokenizer.huggingface.json":
            add_string(writer, key, value)

    monkeypatch.setattr(gguf.GGUFWriter, "add_string", without)
    for source in (task, zoo.load("stories260k")):
        again = zoo.load(export(source, tmp_path / "m.gguf", "f32")).tokenizer
        for text in texts:
            if "▁" not in text:
                assert again.backend.encode(text).ids == source.tokenizer.backend.encode(text).ids, text


def test_a_chat_goes_there_and_back(chat, tmp_path):
    folder, _ = chat
    task = zoo.load(folder)
    again = zoo.load(export(task, tmp_path / "m.gguf", "bf16"))
    messages = [{"role": "user", "content": "Hi <|eot_id|>"}]
    assert isinstance(again, Generate)
    assert again.template is not None
    assert again.template.encode(messages) == task.template.encode(messages)
    assert set(again.generation.eos_token_id) == set(task.generation.eos_token_id)


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ],
    ids=lambda scaling: scaling["rope_type"],
)
def test_scaled_positions_go_there_and_back(scaling, tmp_path):
    raw = json.loads((OWN / "config.json").read_text())
    changes = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64, "rope_theta": 500000.0}
    config = LlamaConfig.from_dict({**raw, **changes, "num_hidden_layers": 1, "rope_scaling": scaling})
    model = LlamaForCausalLM.from_config(config)
    task = Generate(model, zoo.load("stories260k").tokenizer)
    again = zoo.load(export(task, tmp_path / "m.gguf", "f32"))
    ours, theirs = again.config.rope(), config.rope()
    assert (ours.frequencies(0), ours.scale, ours.max_positions) == (
        theirs.frequencies(0),
        theirs.scale,
        theirs.max_positions,
    )
    np.testing.assert_allclose(again.model(IDS), model(IDS), rtol=0, atol=1e-5)


def test_blocks_keep_their_bits(tmp_path):
    first = export(zoo.load("stories260k"), tmp_path / "a.gguf", "q4_1")
    second = export(zoo.load(first), tmp_path / "b.gguf", "q4_1")
    a, b = read_header(first), read_header(second)
    for name, entry in a.tensors.items():
        other = b.tensors[name]
        assert entry.dtype == other.dtype
        np.testing.assert_array_equal(a.data[0][entry.begin : entry.end], b.data[0][other.begin : other.end])
    assert any(isinstance(leaf, QuantTensor) for _, leaf in leaves(zoo.load(second).model))


@pytest.mark.parametrize(("kind", "error"), [("Q4_K", 0.09), ("Q5_K", 0.045), ("Q6_K", 0.022)])
def test_blocks_of_256(kind, error, rng):
    """As the package reads them: of no number, of one sign, of one large number, and as many errors as bits allow."""
    x = rng.standard_normal((9, 512), np.float32) * 0.05
    x[0], x[1], x[2] = 0, np.abs(x[1]), -np.abs(x[2])
    x[3, 7], x[4, 300] = 40, -40
    data = encode(x, kind)
    assert data.dtype == np.uint8
    found = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    assert found.shape == x.shape
    assert not found[0].any()
    for row in (1, 2, 5, 6, 7, 8):
        assert np.linalg.norm(found[row] - x[row]) <= error * np.linalg.norm(x[row])
    assert abs(found[3, 7] - 40) < 1.5
    assert abs(found[4, 300] + 40) < 1.5


def test_a_llama_with_rows_of_256_goes_there_and_back(tmp_path):
    raw = json.loads((OWN / "config.json").read_text()) | {"num_hidden_layers": 1, "intermediate_size": 256}
    zoo.save(LlamaForCausalLM.from_config(LlamaConfig.from_dict(raw), seed=3), tmp_path / "a")
    shutil.copy(OWN / "tokenizer.json", tmp_path / "a")
    task = zoo.load(tmp_path / "a", task="generate")
    again = zoo.load(export(task, tmp_path / "m.gguf", "q4_k"))
    kinds = {part.kind.name for _, leaf in leaves(again.model) if isinstance(leaf, QuantTensor) for part in leaf.parts}
    assert kinds == {"Q4_K", "Q5_0"}
    first = export(again, tmp_path / "n.gguf", "q4_k")
    a, b = read_header(tmp_path / "m.gguf"), read_header(first)
    for name, entry in a.tensors.items():  # what has the kind already keeps its bits
        np.testing.assert_array_equal(read_entry(a, entry), read_entry(b, b.tensors[name]))


def test_the_command(tmp_path, capsys):
    assert main(["export", "stories260k", str(tmp_path / "m.gguf"), "--type", "Q8_0"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == (tmp_path / "m.gguf").stat().st_size
    assert main(["run", str(tmp_path / "m.gguf"), "Once upon a time", "--max-new-tokens", "9"]) == 0
    assert "there was" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "m.gguf")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["stored"]["Q8_0"]["tensors"] > 30
    assert said["files"] == {"m.gguf": (tmp_path / "m.gguf").stat().st_size}


def test_what_is_refused(tmp_path, minilm, capsys):
    task = zoo.load("stories260k")
    with pytest.raises(UnsupportedError, match=r"type 'q3_k' is not one of f32.*did you mean"):
        export(task, tmp_path / "m.gguf", "q3_k")
    with pytest.raises(UnsupportedError, match="BertForMaskedLM cannot be written as GGUF"):
        export(_masked(), tmp_path / "m.gguf")
    embed = zoo.load(minilm)
    embed.encoder = type(embed.encoder)(pooling=("max",))
    with pytest.raises(UnsupportedError, match="the pooling max"):
        export(embed, tmp_path / "m.gguf")
    assert main(["export", "stories260k", str(tmp_path / "none" / "m.gguf")]) == 1
    assert "cannot write" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", "stories260k", str(tmp_path / "m.bin"), "--type", "q8_0"])
    assert not list(tmp_path.iterdir())


def _masked():
    from zoo.models.bert import BertConfig, BertForMaskedLM
    from zoo.tasks.base import TextTask

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    task = TextTask.__new__(TextTask)
    task.model = BertForMaskedLM.from_config(BertConfig(vocab_size=9, **sizes))
    task.config = task.model.config
    return task
