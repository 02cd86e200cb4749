"""Locks on folders: every file that loading reads is compared with its hash, and nothing else is loaded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.apps.cli import main
from zoo.apps.tables import TableExtractor
from zoo.checkpoint.lock_file import LockedFile, LockEntry, entry_of, read_lock, write_lock
from zoo.errors import HubError, LockError, ZooError
from zoo.hub import find
from zoo.lock import check, fingerprint, lock
from zoo.models.bert import BertConfig, BertModel
from zoo.models.vit import ViTConfig, ViTModel
from zoo.weights import RawTensor
from zoo.weights.files import open_weights
from zoo.weights.safetensors import write_safetensors

ROOT = Path(__file__).parent.parent
STORIES = Path(zoo.__file__).parent / "data" / "stories260k"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "text"]
SIZES = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}


def sentence_encoder(folder: Path) -> Path:
    """Sharded weights, a vocabulary, and a Dense module in a folder with a name of its own."""
    model = BertModel.from_config(BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, **SIZES))
    zoo.save(model, folder)
    whole = folder / "model.safetensors"
    source = open_weights(whole)
    names = sorted(source.names())
    shards = {f"model-0000{i}-of-00002.safetensors": names[i - 1 :: 2] for i in (1, 2)}
    for shard, inside in shards.items():
        write_safetensors(folder / shard, {name: source.read(name) for name in inside})
    del source  # Windows removes no file that is mapped
    index = {"weight_map": {name: shard for shard, inside in shards.items() for name in inside}}
    whole.unlink()
    steps = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "head"), ("Normalize", "3_Normalize")]
    texts = {
        "model.safetensors.index.json": index,
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"},
        "special_tokens_map.json": {"pad_token": "[PAD]"},
        "modules.json": [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in steps],
        "sentence_bert_config.json": {"max_seq_length": 16},
        "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True},
        "head/config.json": {"in_features": 16, "out_features": 4, "activation_function": "torch.nn.Tanh"},
    }
    for name, content in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    rng = np.random.default_rng(0)
    dense = {"linear.weight": rng.normal(size=(4, 16)), "linear.bias": rng.normal(size=4)}
    stored = {name: RawTensor(array.astype(np.float32), "F32") for name, array in dense.items()}
    write_safetensors(folder / "head" / "model.safetensors", stored)
    return folder


def stories(folder: Path) -> Path:
    shutil.copytree(STORIES, folder)
    for name in ("LICENSE", "README.md"):
        (folder / name).unlink()
    return folder


def images(folder: Path) -> Path:
    zoo.save(ViTModel.from_config(ViTConfig(image_size=24, patch_size=8, **SIZES)), folder)
    (folder / "preprocessor_config.json").write_text('{"size": 24}')
    return folder


KINDS = {"sentence encoder": sentence_encoder, "stories": stories, "images": images}


@pytest.fixture(params=KINDS)
def locked(request, tmp_path) -> tuple[Path, Path]:
    """A checkpoint's folder, and a lock that names it."""
    folder, path = KINDS[request.param](tmp_path / "model"), tmp_path / "zoo.lock"
    lock([folder], path)
    return folder, path


@pytest.fixture
def one(tmp_path) -> tuple[Path, Path]:
    folder, path = stories(tmp_path / "model"), tmp_path / "zoo.lock"
    lock([folder], path)
    return folder, path


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_file_of_the_folder_is_locked_and_loads(locked):
    folder, path = locked
    (entry,) = read_lock(path).values()
    assert sorted(entry.files) == [p.relative_to(folder).as_posix() for p in files_in(folder)]
    assert {n: file.size for n, file in entry.files.items()} == {n: (folder / n).stat().st_size for n in entry.files}
    task = zoo.load(folder, lock=path)
    assert task.report.fingerprint == task.checkpoint.fingerprint == entry.fingerprint
    assert zoo.load_model(folder, lock=path).report.fingerprint == entry.fingerprint
    assert type(task.model).from_pretrained(folder, lock=path).report.fingerprint == entry.fingerprint
    assert zoo.load(folder).report.fingerprint is None


OPENED = """
import sys
folder, lock = sys.argv[1:]
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
import zoo
task = zoo.load(folder, lock=lock)
opened.clear()  # the hashes' own
zoo.load(folder)
print(*(path for path in opened if path.startswith(folder)), sep="\\n")
"""


def test_loading_opens_locked_files_alone(locked):
    """The list of what is locked is made in one place, and what is read in many."""
    folder, path = locked
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(folder), str(path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    opened = {Path(line).relative_to(folder).as_posix() for line in done.stdout.splitlines()}
    (entry,) = read_lock(path).values()
    assert "config.json" in opened
    assert opened <= set(entry.files)


def test_one_byte_of_any_file_is_refused(locked):
    folder, path = locked
    for file in files_in(folder):
        content = file.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[at] ^= 1
            file.write_bytes(changed)
            with pytest.raises(ZooError) as caught:
                zoo.load(folder, lock=path)
            assert str(file) in str(caught.value)
            # An index or modules.json that is no JSON any more is refused as that, before its hash is.
            assert isinstance(caught.value, LockError) or file.name in ("model.safetensors.index.json", "modules.json")
        file.write_bytes(content)
    zoo.load(folder, lock=path)


def test_a_file_that_is_missing_renamed_or_of_another_size_is_refused(locked):
    folder, path = locked
    for file in files_in(folder):
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        with pytest.raises(ZooError, match=file.name):
            zoo.load(folder, lock=path)
        file.write_bytes(content)
        moved = file.rename(file.with_name("x" + file.name))
        with pytest.raises(LockError, match=file.name):
            zoo.load(folder, lock=path)
        moved.rename(file)
    zoo.load(folder, lock=path)


@pytest.mark.parametrize("extra", ["added_tokens.json", "chat_template.jinja", "processor_config.json", "modules.json"])
def test_a_file_that_would_be_loaded_and_is_not_locked_is_refused(one, extra):
    folder, path = one
    (folder / "notes.txt").write_text("of no concern")
    zoo.load(folder, lock=path)
    (folder / extra).write_text("[]" if extra == "modules.json" else "{}")
    with pytest.raises(LockError, match=f"{extra} would be loaded, and the lock does not name it"):
        zoo.load(folder, lock=path)


def test_weights_that_come_first_are_refused(tmp_path):
    folder, path = sentence_encoder(tmp_path / "model"), tmp_path / "zoo.lock"
    lock([folder], path)
    shutil.copy(STORIES / "model.safetensors", folder)
    with pytest.raises(LockError, match=r"model\.safetensors would be loaded"):
        zoo.load(folder, lock=path)


def test_several_names_keep_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stories(tmp_path / "a"), images(tmp_path / "b")
    lock(["./a/"])
    lock([Path("b"), "stories260k"])
    entries = read_lock("zoo.lock")
    assert list(entries) == ["a", "b", "stories260k"]
    assert entries["a"].fingerprint == entries["stories260k"].fingerprint  # the same files
    for name in ("a", "./a", Path("a"), "b", "stories260k"):
        zoo.load(name, lock="zoo.lock")
    assert check() == {"a": [], "b": [], "stories260k": []}
    (tmp_path / "b" / "config.json").write_text("{}")
    assert check(names=["a"]) == {"a": []}
    assert [bool(problems) for problems in check().values()] == [False, True, False]
    lock(["b"])
    assert read_lock("zoo.lock")["a"] == entries["a"]
    assert check(names=["b"]) == {"b": []}


def test_a_name_that_is_not_locked(one):
    _, path = one
    with pytest.raises(LockError, match=r"has no 'stories260k'.*`zoo lock stories260k -o .*` adds it"):
        zoo.load("stories260k", lock=path)
    lock(["stories260k"], path)
    with pytest.raises(LockError, match="has no 'stories260'; did you mean 'stories260k'"):
        zoo.load("stories260", lock=path)
    with pytest.raises(LockError, match="has no 'stories'"):
        check(path, ["stories"])


def test_a_folder_has_no_revision(one):
    folder, path = one
    with pytest.raises(LockError, match=r"revision 'main' .* was asked for, and a folder is locked"):
        zoo.load(folder, lock=path, revision="main")
    with pytest.raises(HubError, match="only hub names have revisions"):
        lock([folder], path, revision="main")


def test_a_folder_that_is_gone(one, monkeypatch):
    folder, path = one
    shutil.rmtree(folder)
    with pytest.raises(LockError, match="there is no folder"):
        zoo.load(folder, lock=path)
    monkeypatch.chdir(folder.parent)
    write_lock(path, {"org/model": LockEntry(None, {})})
    here = rf"working directory, {re.escape(str(folder.parent))}\)"
    with pytest.raises(LockError, match=f"was locked as a folder, and there is no such folder here .*{here}"):
        zoo.load("org/model", lock=path)
    write_lock(path, {"../gone": LockEntry(None, {})})
    with pytest.raises(LockError, match=f"there is no folder '../gone'.*{here}"):
        zoo.load("../gone", lock=path)


def test_fingerprint_is_the_same_from_files_and_from_the_entry(one):
    folder, path = one
    (entry,) = read_lock(path).values()
    found = find(folder)
    assert (
        fingerprint(found)
        == entry.fingerprint
        == json.loads(path.read_text())["checkpoints"][folder.as_posix()]["fingerprint"]
    )
    assert entry_of(found) == entry
    backwards = LockEntry(None, dict(reversed(entry.files.items())))
    assert backwards.fingerprint == entry.fingerprint
    assert LockEntry("0" * 40, entry.files).fingerprint != entry.fingerprint
    other = {**entry.files, "config.json": LockedFile(1, "0" * 64)}
    assert LockEntry(None, other).fingerprint != entry.fingerprint


def test_the_fingerprint_is_what_is_documented():
    """A known answer: lock files and published reports outlive a release."""
    entry = LockEntry(None, {"b": LockedFile(1, "1" * 64), "a": LockedFile(2, "0" * 64)})
    assert entry.fingerprint == "sha256:232a21b210fada420af19520c4cde49f5d46722edd2b8e1e7ce2335ebdadd128"


def test_hashing_takes_little_memory(tmp_path):
    folder = stories(tmp_path / "model")
    with (folder / "model.safetensors").open("ab") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    try:
        entry = entry_of(find(folder))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert entry.files["model.safetensors"].size == 100 << 20
    assert peak < 8 << 20  # four files at a time, a MiB of each


def test_table_extractor_takes_a_lock(tmp_path):
    path = tmp_path / "zoo.lock"
    lock(["stories260k"], path)
    with pytest.raises(LockError, match="has no 'zoo-table-structure'"):
        TableExtractor(lock=path)
    with pytest.raises(ZooError, match="no checkpoint is loaded by name"):
        TableExtractor(lambda image, threshold: [], None, ocr="none", lock=path)


def test_the_command_writes_checks_and_loads(one, capsys, tmp_path, monkeypatch):
    folder, path = one
    args = ["--lock", str(path)]
    assert main(["lock", str(folder), "stories260k", "-o", str(path)]) == 0
    out, err = capsys.readouterr()
    assert {name: found["fingerprint"] for name, found in json.loads(out).items()} == {
        name: entry.fingerprint for name, entry in read_lock(path).items()
    }
    assert f"zoo: wrote {path}" in err
    assert main(["lock", "--check", "-o", str(path)]) == 0
    assert main(["run", str(folder), "Once", "--max-new-tokens", "3", *args]) == 0
    capsys.readouterr()
    assert main(["info", str(folder), *args]) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == read_lock(path)["stories260k"].fingerprint

    (folder / "tokenizer_config.json").write_text("{}")
    for command in (["run", str(folder), "Once"], ["chat", str(folder)], ["info", str(folder)]):
        assert main([*command, *args]) == 1
        assert "tokenizer_config.json has 2 bytes, the lock names 182" in capsys.readouterr().err
    assert main(["lock", "--check", "-o", str(path)]) == 1
    out, err = capsys.readouterr()
    assert [bool(problems) for problems in json.loads(out).values()] == [True, False]
    assert str(folder) in err
    assert main(["lock", "--check", "stories260k", "-o", str(path)]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["lock", "-o", str(path)])
    with pytest.raises(SystemExit, match="2"):
        main(["lock", "a", "b", "--revision", "main"])
    with pytest.raises(SystemExit, match="2"):
        main(["lock", "--check", "--revision", "main"])


def test_the_command_in_a_terminal(one, capsys, monkeypatch):
    folder, path = one
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["lock", "stories260k", "-o", str(path)]) == 0
    assert "none: a folder" in capsys.readouterr().out
    (folder / "config.json").write_text("{}")
    assert main(["lock", "--check", "-o", str(path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "wrong" in out
    assert "as locked all files" in out
