"""Files in parts, as the gguf package splits them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from made_gguf import OWN, gguf, write_llama

import zoo
from zoo.checkpoint.lock_file import entry_of
from zoo.errors import CheckpointError, NotFoundError
from zoo.hub import find
from zoo.weights.files import open_weights
from zoo.weights.gguf.parts import parts_of
from zoo.weights.gguf.source import GGUFFile

IDS = np.array([[1, 17, 300, 5]])


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    whole, made = gguf.GGUFWriter, []
    gguf.GGUFWriter = lambda path, name: made.append(whole(path, name, split_max_tensors=20)) or made[-1]
    try:
        write_llama(OWN, folder / "m.gguf")
    finally:
        gguf.GGUFWriter = whole
    return sorted(folder.glob("m-*.gguf"))


@pytest.fixture
def copied(split, tmp_path) -> list[Path]:
    return [Path(shutil.copy(part, tmp_path)) for part in split]


def test_parts_are_one_file(split, stories):
    assert [part.name for part in split] == [f"m-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    wanted = zoo.load(stories).model(IDS)
    for part in split:  # whichever is named
        np.testing.assert_array_equal(zoo.load(part).model(IDS), wanted)
    assert set(open_weights(split).names()) == set(open_weights(split[1]).names()) == set(GGUFFile(stories).names())
    assert list(entry_of(find(split[0])).files) == [part.name for part in split]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_part_that_is_missing(copied, gone):
    copied[gone].unlink()
    other = copied[gone - 1]
    with pytest.raises(NotFoundError, match=rf"of 3 parts, and part {gone + 1} is missing: {copied[gone].name}"):
        zoo.load(other)
    with pytest.raises(NotFoundError, match="is missing"):
        GGUFFile(other)


def test_parts_that_do_not_belong_together(copied, stories, tmp_path):
    shutil.copy(copied[2], copied[1])
    with pytest.raises(CheckpointError, match=r"00002-of-00003.gguf: says that it is number 2 \(from 0\) of 3 parts"):
        zoo.load(copied[0])
    shutil.copy(stories, copied[1])
    with pytest.raises(CheckpointError, match=r"number 0 \(from 0\) of 1 parts; by its name it is number 1 of 3"):
        zoo.load(copied[0])
    alone = Path(shutil.copy(copied[0], tmp_path / "renamed.gguf"))
    with pytest.raises(CheckpointError, match=r"renamed.gguf: says that it is number 0 \(from 0\) of 3 parts"):
        zoo.load(alone)


def test_a_tensor_that_is_lost_or_there_twice(copied):
    total = b"split.tensors.count" + (5).to_bytes(4, "little")
    first = copied[0].read_bytes()
    at = first.index(total) + len(total)
    copied[0].write_bytes(first[:at] + (99).to_bytes(4, "little") + first[at + 4 :])
    with pytest.raises(CheckpointError, match=r"says 99 tensors, 3 parts have 47"):
        GGUFFile(copied[0])
    number = b"split.no" + (2).to_bytes(4, "little")
    data = copied[2].read_bytes()
    at = data.index(number) + len(number)
    copied[1].write_bytes(data[:at] + (1).to_bytes(2, "little") + data[at + 2 :])
    with pytest.raises(CheckpointError, match=r"the tensor .* is in m-00002-of-00003.gguf too"):
        GGUFFile(copied[0])


def test_names():
    assert parts_of("a/b-00002-of-00002.gguf") == ["a/b-00001-of-00002.gguf", "a/b-00002-of-00002.gguf"]
    for whole in ("b.gguf", "b-00003-of-00002.gguf", "b-00000-of-00002.gguf", "b-1-of-2.gguf"):
        assert parts_of(whole) == [whole]
