"""The Python in README.md runs: hub names stand for the real MiniLM, and for random checkpoints of the same layouts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from chat_checkpoint import write_chat_checkpoint
from PIL import Image

import zoo.hub
from parity.checkpoints import build

README = Path(__file__).parent.parent / "README.md"
STAND_INS = {
    "google-bert/bert-base-uncased": "bert-base-uncased",
    "cardiffnlp/twitter-roberta-base-sentiment": "twitter-roberta-base-sentiment",
    "dslim/bert-base-NER": "bert-base-NER",
    "deepset/bert-base-cased-squad2": "bert-base-squad2",
    "cross-encoder/ms-marco-MiniLM-L6-v2": "ms-marco-MiniLM-L6-v2",
    "google/vit-base-patch16-224": "vit-base-patch16-224",
    "microsoft/beit-base-finetuned-ade-640-640": "beit-base-finetuned-ade-640-640",
    "microsoft/table-transformer-detection": "table-transformer-detection",
    "microsoft/table-transformer-structure-recognition-v1.1-all": "table-transformer-structure-recognition-v1.1-all",
    "microsoft/trocr-base-printed": "trocr-base-handwritten",
}


def test_every_python_block_runs(minilm, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    pytest.importorskip("jinja2", reason="needs jinja2, for a chat template")
    find = zoo.hub.find
    folder = write_chat_checkpoint(tmp_path / "chat")

    def found(name, **options):
        if name == "sentence-transformers/all-MiniLM-L6-v2":
            return find(minilm)
        if name == "meta-llama/Llama-3.2-1B-Instruct":
            return find(folder)
        return find(build(STAND_INS[name], tmp_path / name) if name in STAND_INS else name)

    monkeypatch.setattr(zoo.hub, "find", found)
    monkeypatch.chdir(tmp_path)
    for name, size in {"cats.png": (64, 48), "page.png": (300, 400), "line.png": (200, 30)}.items():
        Image.effect_noise(size, 50).save(name)
    Path("words.json").write_text(json.dumps([{"text": "Run", "box": [10, 10, 30, 20]}]))
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "copy" / "model.safetensors").is_file()
