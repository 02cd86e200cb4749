"""docs/adding-a-model.md keeps its word: what it says is done in a copy of the repository, with the files that it has.

A folder, a row and a spec are added, and nothing is edited; then zoo, and `zoo parity`, agree with transformers.
"""

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
PAGE = ROOT / "docs" / "adding-a-model.md"
TEXT, PAIR = "They walk to the [MASK] by the water.", ("Where do they walk?", "To the old town.")
HEADS = {"Model": "embed", "ForMaskedLM": "fill-mask", "ForSequenceClassification": "classify"}
SCRIPT = """
import json, sys, zoo
embed, fill, classify = (zoo.load(folder) for folder in sys.argv[1:])
text, pair = json.load(sys.stdin)
print(json.dumps({
    "tasks": [task.name for task in (embed, fill, classify)],
    "unused": [task.report.unused for task in (embed, fill, classify)],
    "embed": embed(text, pooling="cls", normalize=False).tolist(),
    "fill-mask": [[found.token_id, found.score] for found in fill(text)],
    "classify": [[label.label, label.score] for label in classify([pair])[0]],
}))
"""


def files() -> dict[str, str]:
    """The files that the page holds, by name."""
    return {block.file: block.text for block in blocks(PAGE) if block.file is not None}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository without its DistilBERT, to which the page's is added."""
    root = tmp_path_factory.mktemp("repository")
    for name in ("zoo", "parity"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "distilbert*"))
    registry = root / "zoo" / "registry.py"
    rows = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    registry.write_text("".join(row for row in rows if '"distilbert"' not in row), encoding="utf-8")
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:  # the row comes after those that are there
            file.write(text)
    return root


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The checkpoints that transformers itself writes: task -> folder."""
    torch = pytest.importorskip("torch", reason="needs torch, to compare with transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config = transformers.DistilBertConfig(
        vocab_size=300, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64, num_labels=3
    )
    made = {}
    torch.manual_seed(0)
    for head, task in HEADS.items():
        made[task] = tmp_path_factory.mktemp(task)
        model = getattr(transformers, f"DistilBert{head}")(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
        model.save_pretrained(made[task])
        WRITERS["wordpiece"](made[task], config.vocab_size, config.max_position_embeddings)
    return made


def run(repository: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """python, in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], input=text, capture_output=True, text=True, cwd=repository, env=environment
    )


def test_a_family_is_a_folder_a_row_and_a_spec():
    names = {name: text.count("\n") for name, text in files().items()}
    folder = {name for name in names if name.startswith("zoo/models/distilbert/")}
    assert {Path(name).name for name in folder} == {"__init__.py", "config.py", "model.py"}
    assert names.keys() - folder == {"zoo/registry.py", "parity/specs/distilbert.py"}
    assert sum(names[name] for name in folder) <= 160
    assert names["zoo/registry.py"] <= 6
    assert names["parity/specs/distilbert.py"] <= 30


def test_zoo_loads_it_and_says_what_transformers_says(repository: Path, checkpoints: dict[str, Path]):
    import torch
    import transformers

    done = run(repository, "-c", SCRIPT, *map(str, checkpoints.values()), text=json.dumps([TEXT, PAIR]))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["tasks"] == [*HEADS.values()]
    assert found["unused"] == [[], [], []]

    def theirs(task: str, cls: str, *texts: str) -> tuple[torch.Tensor, torch.Tensor]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoints[task])
        model = getattr(transformers, cls).from_pretrained(checkpoints[task]).eval()
        ids = tokenizer(*texts, return_tensors="pt")
        with torch.no_grad():
            return model(ids.input_ids, ids.attention_mask)[0][0], ids.input_ids[0] == tokenizer.mask_token_id

    states, _ = theirs("embed", "DistilBertModel", TEXT)
    np.testing.assert_allclose(found["embed"], states[0], rtol=1e-4, atol=1e-5)
    logits, masked = theirs("fill-mask", "DistilBertForMaskedLM", TEXT)
    scores, ids = logits[masked][0].softmax(-1).topk(5)
    assert [token for token, _ in found["fill-mask"]] == ids.tolist()
    np.testing.assert_allclose([score for _, score in found["fill-mask"]], scores, rtol=1e-4)
    logits, _ = theirs("classify", "DistilBertForSequenceClassification", *PAIR)
    scores, ids = logits.softmax(-1).sort(descending=True)
    assert [label for label, _ in found["classify"]] == [f"LABEL_{i}" for i in ids.tolist()]
    np.testing.assert_allclose([score for _, score in found["classify"]], scores, rtol=1e-4)


@pytest.mark.nightly
def test_parity_holds(repository: Path, checkpoints: dict[str, Path]):
    done = run(repository, "-m", "parity", *map(str, checkpoints.values()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 hold" in done.stdout


@pytest.mark.nightly
def test_parity_builds_the_checkpoints_of_the_spec(repository: Path):
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    names = ("random:distilbert-base-uncased", "random:distilbert-bare", "random:distilbert-sst2")
    for command in (names, (names[0], names[2], "--gradients")):
        done = run(repository, "-m", "parity", *command)
        assert done.returncode == 0, done.stdout + done.stderr
