"""Small checkpoints in the manner of public advisories: each tries to have code run, and none does.

The code leaves a mark when it is imported or unpickled.  Beside each: what zoo says, or None where it loads.
"""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import zoo

SOURCE = Path(zoo.__file__).parent / "data" / "stories260k"


class Touch:
    """A pickle that makes the file at `path`."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


CONFIG: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "auto_map": ("config.json", {"auto_map": {"AutoModelForCausalLM": "evil.Evil"}}, None),
    "auto_map of another repository": ("config.json", {"auto_map": {"AutoConfig": "other/repo--evil.Evil"}}, None),
    "a tokenizer's auto_map": ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}, None),
    "a tokenizer's class": ("tokenizer_config.json", {"tokenizer_class": "evil.Evil"}, None),
    "a kernel of a repository": ("config.json", {"_attn_implementation": "other/repo:evil"}, None),
    "custom_generate": ("generation_config.json", {"custom_generate": "evil"}, None),
    "an unknown model": ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}}, "evil"),
    "a method of quantization": ("config.json", {"quantization_config": {"quant_method": "evil"}}, "quant_method"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a checkpoint that works, with code beside it that leaves a mark, and the copy on the path."""
    copy = tmp_path / "checkpoint"
    shutil.copytree(SOURCE, copy)
    code = f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\nclass Evil: pass\n"
    for name in ("evil.py", "custom_generate/generate.py", "modeling_evil.py"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(code, encoding="utf-8")
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt"):
        (copy / name).write_bytes(pickle.dumps(Touch(tmp_path / "mark")))
    monkeypatch.chdir(copy)
    monkeypatch.syspath_prepend(str(copy))
    return copy


def loads(folder: Path) -> str | None:
    """The error of a load with a call, or None."""
    try:
        assert zoo.load(folder)("Once upon a time", max_new_tokens=2)
    except zoo.ZooError as e:
        return str(e)
    finally:
        assert not (folder.parent / "mark").exists()
        assert "evil" not in sys.modules
    return None


@pytest.mark.parametrize(("file", "fields", "says"), CONFIG.values(), ids=CONFIG)
def test_fields_that_name_code(folder: Path, file: str, fields: dict[str, Any], says: str | None) -> None:
    path = folder / file
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**found, **fields}), encoding="utf-8")
    problem = loads(folder)
    assert (problem is None) if says is None else (problem is not None and says in problem), problem


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_weights_that_are_a_pickle_of_code(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Touch(folder.parent / "mark"), 2))
    problem = loads(folder)
    assert problem is not None
    assert name in problem


def test_code_that_runs_leaves_the_mark(folder: Path) -> None:
    pickle.loads((folder / "optimizer.pt").read_bytes())
    assert (folder.parent / "mark").exists()
