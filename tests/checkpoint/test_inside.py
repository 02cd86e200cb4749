"""No link leads out of a checkpoint: nothing outside its folder is read, hashed or copied."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import zoo
from zoo import lock
from zoo.errors import CheckpointError, NotFoundError
from zoo.files.folder import CheckpointFolder
from zoo.files.inside import checkpoint_file
from zoo.generate.config import GenerationConfig
from zoo.images import ImageProcessor
from zoo.text.tokenizer import Tokenizer
from zoo.weights.files import open_weights

OWN = Path(zoo.__file__).parent / "data" / "stories260k"
OUT = "a link out of its folder"


def link(path: Path, to: Path | str) -> None:
    try:
        path.symlink_to(to)
    except OSError:
        pytest.skip("needs the right to make symbolic links")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint in a folder of its own, with a file of the user's beside that."""
    shutil.copytree(OWN, tmp_path / "model")
    (tmp_path / "secret").write_text('{"secret": 1}')
    return tmp_path / "model"


@pytest.mark.parametrize("form", ["absolute", "relative", "through a link", "through a folder", "through a chain"])
@pytest.mark.parametrize(
    "name", ["chat_template.jinja", "generation_config.json", "special_tokens_map.json", "vocab.txt"]
)
def test_files_beside_the_weights(folder: Path, name: str, form: str) -> None:
    target: Path | str = folder.parent / "secret"
    if form == "relative":
        target = Path("../secret")
    elif form == "through a link":
        link(folder / "inner", target)
        target = "inner"
    elif form == "through a folder":
        link(folder / "deep", "..")
        target = "deep/secret"
    elif form == "through a chain":
        link(folder.parent / "other", "secret")
        target = folder / ".." / "other"
    (folder / name).unlink(missing_ok=True)
    link(folder / name, target)
    for load in (zoo.load, zoo.load_model, lambda f: lock.lock([f], f.parent / "zoo.lock")):
        with pytest.raises(CheckpointError, match=OUT):
            load(folder)
    assert not (folder.parent / "zoo.lock").exists()


def test_each_reader_by_itself(folder: Path) -> None:
    readers = {
        "tokenizer.json": Tokenizer.from_folder,
        "generation_config.json": GenerationConfig.from_folder,
        "preprocessor_config.json": ImageProcessor.from_folder,
        "processor_config.json": ImageProcessor.from_folder,
        "model.safetensors": open_weights,
    }
    for name, read in readers.items():
        (folder / name).unlink(missing_ok=True)
        link(folder / name, "../secret")
        with pytest.raises(CheckpointError, match=OUT):
            read(folder)
        (folder / name).unlink()


def test_weights_and_shards(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    link(folder / "model.safetensors", folder.parent / "outside.safetensors")
    with pytest.raises(CheckpointError, match=OUT):
        zoo.load(folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    link(folder / "one.safetensors", folder.parent / "outside.safetensors")
    with pytest.raises(CheckpointError, match=OUT):
        zoo.load(folder)


@pytest.mark.parametrize("what", ["folder", "config", "another file"])
def test_folders_of_modules(tmp_path: Path, what: str) -> None:
    """A sentence encoder's modules: the folder itself, its config, and a file that a save would copy."""
    from zoo.checkpoint.sentence_encoder import read_sentence_encoder

    outside, folder = tmp_path / "outside", tmp_path / "model"
    for path in (outside, folder):
        path.mkdir()
    (outside / "config.json").write_text('{"word_embedding_dimension": 4, "pooling_mode_mean_tokens": true}')
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for path, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    if what == "folder":
        link(folder / "1_Pooling", "../outside")
    else:
        (folder / "1_Pooling").mkdir()
        (folder / "2_Normalize").mkdir()
    if what == "config":
        link(folder / "1_Pooling" / "config.json", "../../outside/config.json")
    if what == "another file":
        shutil.copy(outside / "config.json", folder / "1_Pooling")
        link(folder / "2_Normalize" / "notes.txt", outside / "config.json")
    with pytest.raises(CheckpointError, match=OUT):
        read_sentence_encoder(folder, 4)


def test_what_may_be_a_link(folder: Path) -> None:
    """The folder itself, and files to others in it; a link to nothing is a file that is not there."""
    (folder / "vocabulary").mkdir()
    (folder / "tokenizer.json").rename(folder / "vocabulary" / "t")
    link(folder / "tokenizer.json", "vocabulary/t")
    link(folder.parent / "link", folder)
    assert zoo.load(folder.parent / "link").model.config.model_type == "llama"
    (folder / "config.json").unlink()
    link(folder / "config.json", "nothing")
    with pytest.raises(NotFoundError, match=r"config\.json"):
        zoo.load(folder)


@pytest.mark.parametrize(
    ("layout", "allowed"),
    [
        ("models--a--b/snapshots/" + "0" * 40, True),
        ("models--a--b/snapshots/" + "0" * 40 + "/1_Pooling", True),
        ("models--a--b/snapshots/main", False),
        ("something/snapshots/" + "0" * 40, False),
        ("models--a--b/other/" + "0" * 40, False),
    ],
)
def test_blobs_of_the_cache(tmp_path: Path, layout: str, allowed: bool) -> None:
    """Blobs of a repository and of the whole cache, but no folder that only looks like either."""
    folder = tmp_path / layout
    folder.mkdir(parents=True)
    for blobs in (tmp_path / "models--a--b" / "blobs", tmp_path / "something" / "blobs", tmp_path / "blobs"):
        blobs.mkdir(parents=True, exist_ok=True)
        (blobs / "blob").write_text("{}")
        (folder / "file").unlink(missing_ok=True)
        link(folder / "file", blobs / "blob")
        if allowed and blobs.parent.name != "something":
            assert checkpoint_file(folder, "file").read_text() == "{}"
        else:
            with pytest.raises(CheckpointError, match=OUT):
                checkpoint_file(folder, "file")
    shutil.rmtree(tmp_path / "models--a--b" / "blobs", ignore_errors=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "blob").write_text("{}")
    (tmp_path / "models--a--b").mkdir(exist_ok=True)
    link(tmp_path / "models--a--b" / "blobs", tmp_path / "home")  # blobs that are a link themselves
    (folder / "file").unlink()
    link(folder / "file", tmp_path / "models--a--b" / "blobs" / "blob")
    with pytest.raises(CheckpointError, match=OUT):
        checkpoint_file(folder, "file")


def test_has_tells_files_from_folders_and_refuses_links(folder: Path) -> None:
    link(folder / "here.json", "config.json")
    link(folder / "out.json", folder.parent / "secret")
    link(folder / "dangling", folder / "nowhere")
    (folder / "deep").mkdir()
    shutil.copy(folder / "config.json", folder / "deep")
    here = CheckpointFolder(folder)
    found = {
        name: here.has(name)
        for name in ("config.json", "here.json", "deep", "deep/config.json", "deep/x", "config.json/x", "dangling", "x")
    }
    assert [name for name, is_file in found.items() if is_file] == ["config.json", "here.json", "deep/config.json"]
    for name in ("out.json", "../secret"):
        with pytest.raises(CheckpointError, match=OUT):
            here.has(name)
