"""Processes that share a model compute what one computes alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.processes import free_port
from zoo.errors import InputError, UnsupportedError
from zoo.generate import GenerationConfig, generate
from zoo.models.llama3 import LlamaConfig
from zoo.models.mistral import MistralConfig
from zoo.models.qwen2 import Qwen2Config
from zoo.models.qwen3 import Qwen3Config
from zoo.registry import model_class
from zoo.saving import save_model
from zoo.typing import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

pytest.importorskip("torch", reason="needs torch")
ROOT = Path(zoo.__file__).parent.parent
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 97}
SIZES |= {"max_position_embeddings": 64, "initializer_range": 0.3}
CONFIGS = {
    "llama": (LlamaConfig, {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
    "mistral": (MistralConfig, {"num_key_value_heads": 4, "sliding_window": 5}),
    "qwen2": (Qwen2Config, {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen3": (Qwen3Config, {"num_key_value_heads": 1, "head_dim": 32}),
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, (config_class, fields) in CONFIGS.items():
        config = config_class.from_dict({**SIZES, **fields, "architectures": [architecture(name)]})
        path = save_model(model_class(config).from_config(config), folder / name) / "model.safetensors"
        file, rng = SafetensorsFile(path), np.random.default_rng(1)
        tensors = {one: file.read(one) for one in file.names()}
        for one, stored in tensors.items():  # biases and norms that say something
            if stored.array.ndim == 1:
                tensors[one] = RawTensor(
                    stored.array + 0.3 * rng.standard_normal(stored.array.shape, np.float32), "F32"
                )
        write_safetensors(path, {one: RawTensor(stored.array.copy(), "F32") for one, stored in tensors.items()})
    return folder


def architecture(name: str) -> str:
    return f"{name.capitalize()}ForCausalLM"


def run(checkpoints: Path, out: Path, ranks: int) -> list[subprocess.CompletedProcess[str]]:
    shared = {**os.environ, "PYTHONPATH": str(ROOT), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    shared |= {"WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    shared["CUDA_VISIBLE_DEVICES"] = ""  # two ranks cannot share one GPU
    command = [sys.executable, str(Path(__file__).with_name("parallel_job.py")), str(checkpoints), str(out)]
    started = [
        subprocess.Popen(command, env={**shared, "RANK": str(i)}, stderr=subprocess.PIPE, text=True)
        for i in range(ranks)
    ]
    return [subprocess.CompletedProcess(command, one.wait(300), "", one.communicate()[1]) for one in started]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_logits_and_texts_are_those_of_one_process(checkpoints, ranks, tmp_path):
    from parallel_job import IDS, PROMPTS, SAMPLED, TEXT

    for done in run(checkpoints, tmp_path, ranks):
        assert done.returncode == 0, done.stderr
    found = [dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(ranks)]
    for name in CONFIGS:
        model: Any = zoo.load_model(checkpoints / name, device="torch:cpu")
        wanted = model(IDS).numpy()
        tokens = np.stack([row[0].ids for row in generate(model, PROMPTS, GenerationConfig(max_new_tokens=20))])
        for of in found:
            assert np.abs(of[f"{name}.logits"] - wanted).max() < 1e-5 * np.abs(wanted).max()
            np.testing.assert_array_equal(of[f"{name}.logits"], found[0][f"{name}.logits"])  # bit for bit
            np.testing.assert_array_equal(of[f"{name}.tokens"], tokens)
            np.testing.assert_array_equal(of[f"{name}.guessed"], tokens)
            assert f"{name}.refused" in of
        # A rank has its slices and no more: heads of keys that ranks share, norms and biases are whole.
        arrays = {id(array): array for _, array in zoo.nn.leaves(model)}.values()
        whole = sum(array.numpy().nbytes for array in arrays)
        heads, size = model.config.key_heads, model.config.head_size
        keys = 2 * 2 * 64 * size * 4 * (max(1, heads // ranks) - heads / ranks)
        small = sum(array.numpy().nbytes for array in arrays if array.ndim == 1)
        for of in found:
            assert of[f"{name}.bytes"] <= whole / ranks + keys + small + 4 * 2 * 64
    if ranks == 2:
        llm = zoo.load("stories260k", device="torch:cpu")
        texts = [of["texts"].tolist() for of in found]
        assert texts[0] == texts[1]  # the sampled one without a seed, too
        assert texts[0][:2] == [llm(TEXT, max_new_tokens=20), llm(TEXT, seed=3, **SAMPLED)]


def test_what_is_refused(checkpoints):
    from zoo.engines.tensor_parallel import load_model

    for options, words in (
        ({"device": "cpu"}, "expected 'torch:cpu'"),
        ({"device": "onnx"}, "expected 'torch:cpu'"),
        ({"weights": "int8"}, "weights is not for a model that processes share"),
        ({"device": "torch:cpu"}, "torchrun"),
    ):
        given: Any = options
        with pytest.raises(UnsupportedError, match=words):
            load_model(checkpoints / "llama", **given)


def test_a_number_of_processes_that_cannot_share(checkpoints, monkeypatch):
    """The error comes before a process waits for the others, which would have no address here."""
    from zoo.engines.tensor_parallel import load_model

    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(InputError, match="num_attention_heads is 4, which 3 processes cannot share equally"):
        load_model(checkpoints / "llama", device="torch:cpu")
