"""One rule for all tasks: of several inputs those that can be used are computed, and the errors of the others named."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from running import command

from zoo.apps.cli import main
from zoo.errors import BatchError, InputError, NotFoundError, ZooError
from zoo.tasks import collect_errors
from zoo.tasks.base import Task


class Lengths(Task):
    """Texts to their lengths; "" cannot be used."""

    name = "lengths"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, texts: Any, pairs: Any = None, *, more: Any = ()) -> Any:
        single = isinstance(texts, str)
        items = [texts] if single else list(texts)
        self.calls.append(len(items))
        for i, text in enumerate(items):
            if not text:
                raise InputError("is empty", argument="texts", index=None if single else i)
            if text == "end":
                raise ZooError("this ends it all")
        found = [len(text) + len(pair) for text, pair in zip(items, pairs or [""] * len(items), strict=True)]
        return found[0] if single else found


def test_the_others_are_computed() -> None:
    task = Lengths()
    with pytest.raises(
        BatchError, match=r"2 of 4 inputs cannot be used: texts\[1\] is empty; texts\[3\] is empty"
    ) as e:
        task(["a", "", "ccc", ""], pairs=["x", "y", "", "z"], more=[1, 2, 3, 4])
    assert e.value.results == [2, None, 3, None]
    assert list(e.value.errors) == [1, 3]
    again = pickle.loads(pickle.dumps(e.value))
    assert (again.results, str(again)) == (e.value.results, str(e.value))


def test_what_can_be_used_costs_nothing_more() -> None:
    task = Lengths()
    assert task(iter(["a", "bb"])) == [1, 2]
    assert task("ccc") == 3
    assert task.calls == [2, 1]
    with pytest.raises(InputError, match=r"^texts is empty$"):
        task("")


def test_only_the_neighbours_are_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_errors, "CHUNK", 2)
    task = Lengths()
    with pytest.raises(BatchError) as e:
        task(iter(["a", "b", "c", "", "e", "f", "", ""]))
    assert e.value.results == [1, 1, 1, None, 1, 1, None, None]
    assert str(e.value.errors[7]) == "texts[7] is empty"
    assert sum(task.calls[1:]) <= 8 + 2 * 3


def test_an_error_that_is_of_no_input_ends_it() -> None:
    with pytest.raises(ZooError, match=r"^this ends it all$"):
        Lengths()(["a", "end", ""])


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
    assert done.stderr.splitlines()[1:] == ["zoo: 1 lines could not be used: see the messages above"]
