"""docs/adding-a-task.md keeps its word: its files and rows go into a copy of the repository, and nothing is edited."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from checks.blocks import blocks
from parity.vocabularies import WRITERS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "adding-a-task.md"
TEXT, CHOICES = "They walk to the old town", ["by the water.", "and a river runs.", "no"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, to which the page's files are added."""
    root = tmp_path_factory.mktemp("repository")
    for name in ("zoo", "parity"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks(PAGE):
        if block.file is not None:
            path = root / block.file
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as file:  # a row comes after those that are there
                file.write(block.text)
    return root


def run(repository: Path, *words: str) -> str:
    """The output of Python in the copy."""
    env = {**os.environ, "PYTHONPATH": str(repository), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=repository, env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def swag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of several choices, as transformers writes it."""
    torch = pytest.importorskip("torch", reason="needs torch, to compare with transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config = transformers.BertConfig(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    model = transformers.BertForMultipleChoice(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    folder = tmp_path_factory.mktemp("swag")
    model.save_pretrained(folder)
    WRITERS["wordpiece"](folder, config.vocab_size, config.max_position_embeddings)
    return folder


def wanted(folder: Path) -> np.ndarray:
    """transformers' probabilities of the choices."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMultipleChoice.from_pretrained(folder).eval()
    given = tokenizer([TEXT] * len(CHOICES), CHOICES, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**{name: array[None] for name, array in given.items()}).logits
    return logits.softmax(-1)[0].numpy()


def test_a_task_is_a_file_and_a_row(repository: Path, swag: Path):
    scores = wanted(swag)
    order = np.argsort(-scores)
    command = ("-m", "zoo", "run", str(swag), TEXT, "--choices", "|".join(CHOICES))
    found = json.loads(run(repository, *command))
    assert [one["text"] for one in found] == [CHOICES[i] for i in order]
    np.testing.assert_allclose([one["score"] for one in found], scores[order], rtol=1e-5)
    shown = run(repository, *command, "--text")
    assert shown.splitlines()[0] == TEXT
    assert f"{scores.max():.4f}" in shown.splitlines()[1]
    assert "multiple-choice" in run(repository, "-m", "zoo", "run", "--help")


def test_its_results_are_columns_of_a_table(repository: Path, swag: Path, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": TEXT}) + "\n", encoding="utf-8")
    places = str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")
    run(repository, "-m", "zoo", "map", str(swag), *places, "--choices", "|".join(CHOICES))
    row = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert row["choice"] == CHOICES[int(wanted(swag).argmax())]


@pytest.mark.slow
def test_an_input_is_a_file(repository: Path):
    """On NumPy and ONNX Runtime, in one process."""
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    script = (
        "from parity.__main__ import main\n"
        "names = ['random:layoutlm-base-uncased', 'random:layoutlm-tagger']\n"
        "print(main(names), main([*names, '--device', 'onnx']))"
    )
    shown = run(repository, "-c", script)
    assert shown.count("2 of 2 hold") == 2
    assert shown.endswith("0 0\n")


def test_an_input_is_exported(repository: Path, tmp_path: Path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
    pytest.importorskip("torch", reason="needs torch, by which the checkpoint's weights are drawn")
    script = (
        "import sys, zoo\nfrom pathlib import Path\nfrom parity.checkpoints import build\n"
        "from zoo.apps.onnx_export.export import export_model\n"
        "export_model(zoo.load_model(build('layoutlm-tagger', Path(sys.argv[1]))), sys.argv[2])"
    )
    run(repository, "-c", script, str(tmp_path / "model"), str(tmp_path / "onnx"))
    proof = json.loads((tmp_path / "onnx" / "parity.json").read_text(encoding="utf-8"))
    assert proof["outputs"]["logits"]["relative_l2"] < 1e-5
    index = json.loads((tmp_path / "onnx" / "model.onnx.index.json").read_text(encoding="utf-8"))
    (graph,) = index["metadata"]["graphs"].values()
    assert "bbox" in [one["name"] for one in json.loads(graph["signature"])["inputs"]]
