"""Caches that are kept and saved: what they know is not computed again, and no other model takes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint

import zoo
from zoo.apps.cli.chat import Continued, _command
from zoo.errors import CheckpointError, InputError, NotFoundError, ZooError
from zoo.nn import leaves
from zoo.quant import QuantTensor
from zoo.typing import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

TEXT = "Once upon a time there was a girl named Lily. She had a red ball."


def streamed(llm: Any, text: str, cache: Any = None, **options: Any) -> str:
    return "".join(llm.stream(text, cache=cache, max_new_tokens=12, **options))


@pytest.fixture
def fed(monkeypatch) -> list[int]:
    """The numbers of tokens that Llamas are given."""
    from zoo.models.llama3 import LlamaModel

    found, encode = [], LlamaModel.encode
    monkeypatch.setattr(LlamaModel, "encode", lambda self, t: found.append(t.shape[1]) or encode(self, t))
    return found


@pytest.fixture(scope="module")
def llm() -> Any:
    return zoo.load("stories260k")


@pytest.fixture
def saved(llm, tmp_path) -> Path:
    cache = llm.prompt_cache()
    streamed(llm, TEXT, cache)
    cache.save_cache(tmp_path / "text.safetensors")
    return tmp_path / "text.safetensors"


@pytest.mark.parametrize("lookup", [None, 5])
def test_texts_are_those_without_a_cache(llm, lookup, fed):
    cache = llm.prompt_cache()
    for text in (TEXT, TEXT + " One day", TEXT[:30], "Tom", TEXT + TEXT + TEXT):
        wanted = streamed(llm, text)
        fed.clear()
        assert streamed(llm, text, cache, prompt_lookup_num_tokens=lookup) == wanted
        if text == TEXT + " One day":
            assert fed[0] < 8
        assert cache.length == len(cache.ids) - 1


def test_a_text_that_is_broken_off(llm):
    cache = llm.prompt_cache()
    pieces = llm.stream(TEXT, cache=cache, max_new_tokens=30, prompt_lookup_num_tokens=5)
    text = TEXT + "".join(piece for _, piece in zip(range(4), pieces, strict=False))
    pieces.close()
    assert streamed(llm, text, cache) == streamed(llm, text)


@pytest.mark.parametrize("device", [None, "onnx", "torch:cpu", "torch:cpu bfloat16"])
def test_a_saved_cache_goes_on(device, tmp_path, fed):
    packages = {"onnx": "onnxruntime", "torch": "torch"}
    name, _, dtype = (device or "").partition(" ")
    if device:
        pytest.importorskip(packages[device[:4] if device == "onnx" else "torch"])
    load: dict[str, Any] = {"device": name or None, "dtype": dtype or None}
    llm: Any = zoo.load("stories260k", **load)
    cache = llm.prompt_cache()
    streamed(llm, TEXT, cache)
    cache.save_cache(tmp_path / "text.safetensors")
    file = SafetensorsFile(tmp_path / "text.safetensors")
    assert file.dtype("keys.0") == ("BF16" if dtype else "F32")
    other: Any = zoo.load("stories260k", **load)
    loaded = other.prompt_cache(tmp_path / "text.safetensors")
    assert (loaded.ids, loaded.length) == (cache.ids[:-1], len(cache.ids) - 1)
    fed.clear()
    assert streamed(other, TEXT, loaded) == streamed(llm, TEXT)
    if device != "onnx":
        assert fed[0] == 1  # the prompt's last token


def test_files_of_other_models(llm, saved, tmp_path):
    cache = llm.prompt_cache(saved)
    before = list(cache.ids), cache.length
    for other in (zoo.load("stories260k", weights="int8"), zoo.load("stories260k", dtype="float64")):
        with pytest.raises(CheckpointError, match=r"other weights, or in another precision|another dtype"):
            other.prompt_cache(saved)
    chatty: Any = zoo.load(write_chat_checkpoint(tmp_path / "chatty"), task="generate")
    with pytest.raises(CheckpointError, match="another model"):
        chatty.prompt_cache(saved)
    bad, data = tmp_path / "bad.safetensors", saved.read_bytes()
    file = SafetensorsFile(saved)
    tensors = {name: file.read(name) for name in file.names()}
    for content in (data[:-1], data[: len(data) // 2], data[:4], b"", data + b"x", b"[]"):
        bad.write_bytes(content)
        with pytest.raises(CheckpointError):
            cache.load_cache(bad)
    write_safetensors(bad, tensors)  # without what is said of them
    with pytest.raises(CheckpointError, match="is not a saved prompt cache"):
        cache.load_cache(bad)
    bad.write_bytes(data.replace(b'"keys.1"', b'"keys.9"'))
    with pytest.raises(CheckpointError, match=r"keys\.1 is missing"):
        cache.load_cache(bad)
    at = data.index(tensors["tokens"].array.tobytes())
    bad.write_bytes(data[:at] + np.int64(1 << 40).tobytes() + data[at + 8 :])
    with pytest.raises(CheckpointError, match="none of this model"):
        cache.load_cache(bad)
    at = data.index(tensors["values.1"].array.tobytes())
    bad.write_bytes(data[:at] + np.float32(np.nan).tobytes() + data[at + 4 :])
    with pytest.raises(CheckpointError, match=r"values\.1 has values that are not finite"):
        cache.load_cache(bad)
    with pytest.raises(NotFoundError):
        cache.load_cache(tmp_path / "none")
    assert (cache.ids, cache.length) == before


STORIES = Path(zoo.__file__).parent / "data" / "stories260k"


def stories_with(folder: Path, change: Callable[[dict[str, np.ndarray]], object]) -> Path:
    """A copy of the checkpoint whose tensors a function has changed."""
    shutil.copytree(STORIES, folder)
    source = SafetensorsFile(STORIES / "model.safetensors")
    tensors = {name: np.array(source.read(name).array) for name in source.names()}
    change(tensors)
    types = {name: source.dtype(name) for name in tensors}
    write_safetensors(folder / "model.safetensors", {n: RawTensor(x, types[n]) for n, x in tensors.items()})
    return folder


@pytest.mark.parametrize("weights", [None, "int8", "int4"])
def test_one_row_of_one_matrix_makes_another_model(weights, tmp_path):
    def shift(tensors: dict[str, np.ndarray]) -> None:
        tensors["model.layers.0.self_attn.v_proj.weight"][1:4] += 3

    a, b = (zoo.load(str(name), weights=weights) for name in (STORIES, stories_with(tmp_path / "b", shift)))
    assert streamed(a, TEXT) != streamed(b, TEXT)
    cache = a.prompt_cache()
    streamed(a, TEXT, cache)
    cache.save_cache(tmp_path / "text.safetensors")
    with pytest.raises(CheckpointError, match=r"other weights.*load that model, or compute the text again"):
        b.prompt_cache(tmp_path / "text.safetensors")


def test_the_smallest_change_of_any_array_makes_another_model(llm, saved):
    for path, leaf in list(leaves(llm.model)):
        parts = leaf.parts if isinstance(leaf, QuantTensor) else [None]
        for i, part in enumerate(parts):
            changed: Any = zoo.load("stories260k")
            node, names = changed.model, path.split(".")
            for name in names[:-1]:
                node = node[int(name)] if name.isdigit() else getattr(node, name)
            x = np.array(leaf if part is None else part.arrays[0])
            x.reshape(-1)[x.size // 3] = np.nextafter(x.reshape(-1)[x.size // 3], np.float32(9))
            if part is None:
                setattr(node, names[-1], x)
            else:
                rows = [replace(one, arrays=(x,)) if j == i else one for j, one in enumerate(parts)]
                setattr(node, names[-1], QuantTensor(rows))
            with pytest.raises(CheckpointError, match="other weights"):
                changed.prompt_cache(saved)


def test_weights_in_another_file_are_the_same(saved, tmp_path):
    """The file's own bytes do not count, only what it holds."""

    def turn(tensors: dict[str, np.ndarray]) -> None:
        for name in sorted(tensors, reverse=True):
            tensors[name] = tensors.pop(name)

    other: Any = zoo.load(stories_with(tmp_path / "b", turn))
    assert (tmp_path / "b/model.safetensors").read_bytes() != (STORIES / "model.safetensors").read_bytes()
    assert other.prompt_cache(saved).length > 10


@pytest.mark.parametrize("alpha", [1, 8])
def test_an_adapter_makes_another_model(alpha, saved, tmp_path):
    """Also where only its scale differs."""

    def with_scale(scale: float) -> Any:
        folder = tmp_path / f"adapter {scale}"
        folder.mkdir()
        config = {"peft_type": "LORA", "r": 1, "lora_alpha": scale, "target_modules": ["q_proj"]}
        (folder / "adapter_config.json").write_text(json.dumps(config))
        name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
        pair = {"A": np.full((1, 64), 0.1, np.float32), "B": np.full((64, 1), 0.1, np.float32)}
        tensors = {name.format(k): RawTensor(x, "F32") for k, x in pair.items()}
        write_safetensors(folder / "adapter_model.safetensors", tensors)
        return zoo.load("stories260k", adapter=folder)

    one = with_scale(4)
    with pytest.raises(CheckpointError, match="other weights"):
        one.prompt_cache(saved)
    cache = one.prompt_cache()
    streamed(one, TEXT, cache)
    cache.save_cache(tmp_path / "adapted.safetensors")
    with pytest.raises(CheckpointError, match="other weights"):
        with_scale(alpha).prompt_cache(tmp_path / "adapted.safetensors")


def test_what_cannot_be_saved(llm, tmp_path):
    with pytest.raises(InputError, match="empty"):
        llm.prompt_cache().save_cache(tmp_path / "x.safetensors")
    cache = llm.prompt_cache()
    streamed(llm, TEXT, cache)
    with pytest.raises(ZooError, match="cannot write"):
        cache.save_cache(tmp_path / "none" / "x.safetensors")


def test_a_conversation(tmp_path, fed, capsys):
    pytest.importorskip("jinja2", reason="needs jinja2")
    llm: Any = zoo.load(write_chat_checkpoint(tmp_path / "chatty"), task="generate")
    options = {"max_new_tokens": 8, "do_sample": False}
    talk, path = llm.conversation("Be brief. " * 5, **options), tmp_path / "talk.safetensors"
    answers = ["".join(talk.say("Hello"))]
    assert _command(talk, f"/save {path}", []) is None
    answers.append("".join(talk.say("Really?")))
    later = llm.conversation(**options)
    assert _command(later, f"/load {path}", []) is None
    assert "3 messages from" in capsys.readouterr().err
    assert later.messages[-1] == {"role": "assistant", "content": answers[0]}
    fed.clear()
    assert "".join(later.say("Really?")) == answers[1]
    assert later.messages == talk.messages
    assert fed[0] < later.known.length / 2
    with pytest.raises(InputError, match="json"):
        _command(Continued(llm, {}), f"/save {path}", [])
    cache = llm.prompt_cache()
    streamed(llm, TEXT, cache)
    cache.save_cache(path)  # without messages
    with pytest.raises(InputError):
        later.load_cache(path)
