"""One rule for all tasks: a bad input among several costs nothing but itself, and no good one is computed twice."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.specs import SPECS
from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.errors import BatchError, InputError, ZooError
from zoo.tasks.arguments import collect_results, map_good

TEXTS = ["Anna went to Rome.", "no", "So did the boy who sat in front of her.", "Stocks fell again today, as they do."]
NO_TEXTS: list[Any] = [None, "a \ud800", 7]
LABELS = ["home", "money"]
RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 255, (40 + 9 * i, 90, 3), np.uint8) for i in range(4)]
NO_IMAGES: list[Any] = ["none.png", b"\x89PNG no more", [1], np.zeros((3, 3, 7), np.uint8)]
RECORDINGS = [RNG.uniform(-0.1, 0.1, 4000 + 700 * i).astype(np.float32) for i in range(4)]
NO_RECORDINGS: list[Any] = [b"no audio", np.zeros((2, 2), np.float32), "none.wav"]
LONG = "word " * 600

# kind of input, spec, call with a list of them -> results
TASKS: dict[str, tuple[str, str, Callable[[Any, list[Any]], Any]]] = {
    "embed": ("texts", "all-MiniLM-L6-v2", lambda task, given: task(given)),
    "embed, int8": ("texts", "all-MiniLM-L6-v2", lambda task, given: task(given, precision="binary")),
    "classify": ("texts", "bert-emotion", lambda task, given: task(given)),
    "classify pairs": ("pairs", "bert-emotion", lambda task, given: task(given)),
    "tag": ("texts", "bert-base-NER", lambda task, given: task(given)),
    "fill-mask": ("masks", "bert-base-uncased", lambda task, given: task(given)),
    "entity-classification": (
        "texts",
        "luke-large-finetuned-open-entity",
        lambda task, given: first_letters(task, given),
    ),
    "answer": ("contexts", "bert-base-squad2", lambda task, given: task("who went to rome ?", given)),
    "answer questions": ("texts", "bert-base-squad2", lambda task, given: task(given, TEXTS[0])),
    "zero-shot-classification": ("texts", "bart-large-mnli", lambda task, given: task(given, LABELS)),
    "sparse-embed": ("texts", "bert-base-uncased", lambda task, given: task(given, top_k=5)),
    "generate": ("texts", "stories260k", lambda task, given: task(given, max_new_tokens=5)),
    "translation": ("texts", "flan-t5-small", lambda task, given: task(given, max_new_tokens=4)),
    "classify images": ("images", "vit-base-patch16-224", lambda task, given: task(given)),
    "embed images": ("images", "beit-cls-token", lambda task, given: task(given, normalize=True)),
    "segment": ("images", "beit-base-finetuned-ade-640-640", lambda task, given: task(given)),
    "detect": ("images", "table-transformer-detection", lambda task, given: task(given, threshold=0.0)),
    "depth": ("images", "Depth-Anything-V2-Small", lambda task, given: task(given)),
    "segment objects": ("images", "detr-resnet-50-panoptic", lambda task, given: task(given)),
    "segment queries": ("images", "mask2former-resnet-50", lambda task, given: task(given, threshold=0.1)),
    "keypoint-detection": ("images", "vitpose-base-simple", lambda task, given: task(given)),
    "read": ("images", "trocr-small-printed", lambda task, given: task(given, max_new_tokens=4)),
    "zero-shot-image-classification": ("images", "clip-vit-base-patch32", lambda task, given: task(given, LABELS)),
    "zero-shot-object-detection": (
        "images",
        "owlv2-base-patch16-ensemble",
        lambda task, given: task(given, LABELS, threshold=0.0),
    ),
    "zero-shot-image-segmentation": ("images", "clipseg-rd64", lambda task, given: task(given, LABELS)),
    "embed both": ("images", "clip-vit-base-patch32", lambda task, given: task(given)),
    "automatic-speech-recognition": ("audio", "whisper-base", lambda task, given: task(given, temperature=0)),
    "audio-classification": ("audio", "whisper-classifier", lambda task, given: task(given, batch_size=2)),
    "zero-shot-audio-classification": ("audio", "clap-htsat-unfused", lambda task, given: task(given, LABELS)),
    "embed sounds": ("audio", "clap-htsat-unfused", lambda task, given: task(given, batch_size=3)),
}


def first_letters(task: Any, given: Any) -> Any:
    """The types of what the first character of each text names."""
    given = given if isinstance(given, str) else list(given)
    return task(given, (0, 1) if isinstance(given, str) else [(0, 1)] * len(given))


KINDS: dict[str, tuple[list[Any], list[Any]]] = {
    "texts": (TEXTS, NO_TEXTS),
    "pairs": ([(text, "yes") for text in TEXTS], [("a", None), "alone", ("a", "b", "c")]),
    "masks": ([f"{text} [MASK]" for text in TEXTS], [*NO_TEXTS, "no mask", LONG + "[MASK]"]),
    "contexts": (TEXTS, [*NO_TEXTS, " ", ""]),
    "images": (IMAGES, NO_IMAGES),
    "audio": (RECORDINGS, NO_RECORDINGS),
}


def loaded(name: str, folder: Path) -> Any:
    _, spec, _ = TASKS[name]
    task = name.partition(" ")[0].rstrip(",")
    if spec in EMBEDDED_NAMES:
        return zoo.load(spec)
    if SPECS[spec].format not in ("safetensors", "sharded"):
        pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    return zoo.load(build(spec, folder), task=task)


class CountingRunner:
    """Counts the rows that a task's models compute."""

    def __init__(self, runner: Any):
        self._runner, self.rows = runner, 0

    def __call__(self, model: Any, x: Any, *args: Any, **options: Any) -> Any:
        self.rows += len(x)
        return self._runner(model, x, *args, **options)

    def run(self, fn: Any, *records: Any) -> Any:
        self.rows += records[0].shape[0] if hasattr(records[0], "shape") else 1
        return self._runner.run(fn, *records)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)


def plain(result: Any) -> Any:
    """A result to compare: numbers rounded, arrays and objects as lists."""
    if isinstance(result, np.ndarray):
        return np.round(result.astype(np.float64), 4).tolist()
    if isinstance(result, float):
        return round(result, 4)
    if isinstance(result, list | tuple):
        return [plain(one) for one in result]
    return (
        plain([v for k, v in sorted(vars(result).items()) if k != "array"]) if hasattr(result, "__dict__") else result
    )


@pytest.mark.parametrize("name", TASKS)
def test_the_good_ones_are_computed_once(name: str, tmp_path: Path) -> None:
    kind, _, call = TASKS[name]
    good, bad = KINDS[kind]
    task = loaded(name, tmp_path)
    task.runner = counting = CountingRunner(task.runner)
    wanted, once = call(task, good), counting.rows
    mixed = [good[0], bad[0], good[1], good[2], *bad[1:], good[3]]
    for given in (mixed, iter(mixed)):  # type: ignore[assignment]
        counting.rows = 0
        with pytest.raises(BatchError) as e:
            call(task, given)  # type: ignore[arg-type]
        assert counting.rows == once + (kind == "masks")  # only the tokens say that a text has no mask
        places = [1, *range(4, 3 + len(bad))]
        assert sorted(e.value.errors) == places
        assert [i for i, one in enumerate(e.value.results) if one is None] == places
        found = [one for i, one in enumerate(e.value.results) if i not in places]
        assert plain(found) == plain(list(wanted))
    for i, error in e.value.errors.items():
        assert error.index == i
        assert f"[{i}]" in str(error)


@pytest.mark.parametrize("name", ["embed", "classify images", "audio-classification", "generate"])
def test_one_alone_and_none_good(name: str, tmp_path: Path) -> None:
    kind, _, call = TASKS[name]
    bad = KINDS[kind][1]
    task = loaded(name, tmp_path)
    for one in (bad[0], [bad[0]]):
        with pytest.raises(ZooError) as alone:
            task(one)
        assert not isinstance(alone.value, BatchError)
    with pytest.raises(BatchError) as e:
        call(task, bad)
    assert e.value.results == [None] * len(bad)


def test_an_open_file_is_read_once(tmp_path: Path) -> None:
    task = loaded("classify images", tmp_path)
    files = []
    for array in IMAGES:
        Image.fromarray(array).save(file := io.BytesIO(), "PNG")
        file.seek(0)
        files.append(file)
    with pytest.raises(BatchError) as e:
        task([*files[:2], io.BytesIO(b"no image"), *files[2:]])
    assert plain([one for one in e.value.results if one]) == plain(task(IMAGES))


def test_long_texts_among_others(tmp_path: Path) -> None:
    """What only the tokenizer finds: here a text without a space that is too long to be cut."""
    task = loaded("embed", tmp_path)
    task.runner = counting = CountingRunner(task.runner)
    wanted, once = task(TEXTS), counting.rows
    counting.rows = 0
    with pytest.raises(BatchError, match=r"texts\[2\] has \d+ characters, and no space") as e:
        task([*TEXTS[:2], "x" * (1 << 20), *TEXTS[2:]])
    assert counting.rows == once
    np.testing.assert_allclose([one for one in e.value.results if one is not None], wanted, atol=1e-6)


def test_a_stream_ends_at_a_bad_text(tmp_path: Path) -> None:
    task = loaded("embed", tmp_path)
    found: list[np.ndarray] = []
    with pytest.raises(InputError, match=r"^texts\[3\] is None"):
        found.extend(task.stream([*TEXTS[:3], None, "more"]))
    np.testing.assert_allclose(found, task(TEXTS[:3]), atol=1e-6)


def test_chats(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="needs jinja2")
    from chat_checkpoint import write_chat_checkpoint

    llm: Any = zoo.load(write_chat_checkpoint(tmp_path / "chat"), task="generate")
    options: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False}
    chat = [{"role": "user", "content": "Hello"}]
    with pytest.raises(BatchError, match=r"messages\[1\]") as e:
        llm.chat([chat, [{"role": "user"}], chat], **options)
    assert e.value.results == [llm.chat(chat, **options), None, llm.chat(chat, **options)]


def test_a_prompt_that_is_too_long_is_named(tmp_path: Path) -> None:
    llm: Any = zoo.load("stories260k")
    with pytest.raises(BatchError, match=r"texts\[1\].*context") as e:
        llm(["Once", "a " * 2000, "Tom"], max_new_tokens=3)
    assert e.value.results[::2] == llm(["Once", "Tom"], max_new_tokens=3)
    with pytest.raises(InputError, match=r"^the prompt has"):
        llm("a " * 2000)


def test_an_error_that_is_of_no_input_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = loaded("embed", tmp_path)

    def fail(*_: Any) -> None:
        raise ZooError("this ends it all")

    monkeypatch.setattr(task, "call", fail)
    with pytest.raises(ZooError, match=r"^this ends it all$"):
        task(["a", None])


def test_what_is_returned() -> None:
    bad = InputError("is bad", argument="texts", index=1)
    assert (collect_results([1], True), collect_results([1, 2], False)) == (1, [1, 2])
    with pytest.raises(InputError, match=r"texts\[1\] is bad"):
        collect_results([bad], True)
    with pytest.raises(BatchError, match=r"1 of 2 inputs cannot be used: texts\[1\] is bad") as e:
        collect_results([3, bad], False)
    again = pickle.loads(pickle.dumps(e.value))
    assert (again.results, str(again)) == ([3, None], str(e.value))
    assert map_good(str, [1, bad, 2]) == ["1", bad, "2"]


def test_a_million_wrong_inputs_end_soon():
    """The first 10,000 say that the wrong thing was passed; beside one text, each has its own error."""
    from zoo.tasks.arguments import collect_results, texts_or_errors

    with pytest.raises(InputError, match=r"1,000,000 items, and none of the first 10,000 is a text: texts\[0\]") as e:
        texts_or_errors([5] * 1_000_000, "texts")
    assert not isinstance(e.value, BatchError)
    found, single = texts_or_errors(["a", *[5] * 10_001], "texts")
    with pytest.raises(BatchError) as e:
        collect_results(found, single)
    assert (e.value.results[0], len(e.value.errors)) == ("a", 10_001)
    assert e.value.errors[1].__traceback__ is None  # which would keep what was passed
