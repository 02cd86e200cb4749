"""Of several inputs those that can be used are computed and shown, and the errors of the others named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from running import command

from zoo.apps.cli import main
from zoo.errors import BatchError, NotFoundError


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (30, 20), "red").save("good.png")
    Image.new("RGB", (24, 24), "blue").save("other.png")
    Path("bad.png").write_bytes(b"\x89PNG no more")
    return ["good.png", "bad.png", "other.png", "none.png"]


@pytest.mark.parametrize("task", ["vision embed", "vision classify", "vision segment"])
def test_images(task: str, images: list[str], folder_of: Callable[[str], str]) -> None:
    import zoo

    loaded: Any = zoo.load(folder_of(task))
    with pytest.raises(BatchError) as e:
        loaded(images)
    assert set(e.value.errors) == {1, 3}
    assert isinstance(e.value.errors[3], NotFoundError)
    assert str(e.value.errors[1]).startswith("images[1]: bad.png")
    good = loaded(["good.png", "other.png"])
    for found, wanted in zip((e.value.results[0], e.value.results[2]), good, strict=True):
        if task == "vision embed":
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        elif task == "vision classify":
            assert [one.label for one in found] == [one.label for one in wanted]
        else:
            assert np.array_equal(found.mask, wanted.mask)


@pytest.mark.parametrize("task", ["embed", "fill-mask", "classify", "tag"])
def test_texts(task: str, folder_of: Callable[[str], str]) -> None:
    import zoo

    loaded: Any = zoo.load(folder_of(task))
    with pytest.raises(BatchError) as e:
        loaded(["the cat [MASK]", "a \ud800", "a garden [MASK]", None])
    assert set(e.value.errors) == {1, 3}
    assert str(e.value.errors[3]).startswith("texts[3] is None")
    assert len(e.value.results) == 4
    assert all((e.value.results[i] is None) == (i in (1, 3)) for i in range(4))


def test_the_command_shows_the_good_ones(
    images: list[str], folder_of: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", folder_of("vision classify"), *images]) == 1
    out = capsys.readouterr()
    results = json.loads(out.out)
    assert [isinstance(one, dict) and "error" in one for one in results] == [False, True, False, True]
    assert out.err.startswith("zoo: 2 of 4 inputs cannot be used: images[1]: bad.png")
    assert out.err.count("\n") == 1


def test_lines_that_cannot_be_used_are_lines_with_an_error(folder_of: Callable[[str], str]) -> None:
    done = command("run", folder_of("fill-mask"), stdin="a [MASK]\nthe cat\nthe [MASK]\n")
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [isinstance(one, dict) for one in lines] == [False, True, False]
    assert done.stderr.splitlines()[0].startswith("zoo: stdin, lines 1 ... 3: 1 of 3 inputs cannot be used: texts[1]")
    assert done.stderr.splitlines()[1:] == ["zoo: 1 line could not be used: see the messages above"]
