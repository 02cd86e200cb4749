"""The Python in README.md runs: hub names stand for the real MiniLM, and for random checkpoints of the same layouts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
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
}


def test_every_python_block_runs(minilm, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    find = zoo.hub.find

    def found(name, **options):
        if name == "sentence-transformers/all-MiniLM-L6-v2":
            return find(minilm)
        return find(build(STAND_INS[name], tmp_path / name) if name in STAND_INS else name)

    monkeypatch.setattr(zoo.hub, "find", found)
    monkeypatch.chdir(tmp_path)
    Image.effect_noise((64, 48), 50).save("cats.png")
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "copy" / "model.safetensors").is_file()
