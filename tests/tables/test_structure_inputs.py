"""Bad input of `build_table` and `read_words`: the message names the object, word or file, and what is wrong."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from zoo.apps.tables import Word, build_table, read_words
from zoo.apps.tables import words as module
from zoo.errors import InputError, NotFoundError
from zoo.images.boxes import Detection

OBJECTS = [Detection("table row", 0.9, (0, 0, 9, 9)), Detection("table column", 0.9, (0, 0, 9, 9))]
WORD = Word("a", (1, 1, 2, 2))
GOOD = {"text": "a", "box": [0, 0, 9, 9]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "table rows"}, r"objects\[1\] has the label 'table rows', known are .*did you mean 'table row'"),
        ({"label": 2}, r"objects\[1\] has the label 2, known are table, "),
        ({"box": (0, math.nan, 1, 1)}, r"objects\[1\]\.box has y0 = nan, expected a finite number"),
        ({"box": (0, 0, math.inf, 1)}, r"objects\[1\]\.box has x1 = inf"),
        ({"box": (0, 0, 1e300, 1)}, r"objects\[1\]\.box has x1 = 1e\+300"),
        ({"box": (0, 9, 1, 8)}, r"objects\[1\]\.box is \(0\.0, 9\.0, 1\.0, 8\.0\), expected .* y0 <= y1"),
        ({"box": (0, 0, 1)}, r"objects\[1\]\.box is \(0, 0, 1\), expected four numbers"),
        ({"box": None}, r"objects\[1\]\.box is None, expected four numbers"),
        ({"box": ("0", 0, 1, 1)}, r"objects\[1\]\.box has x0 = '0'"),
        ({"score": math.nan}, r"objects\[1\]\.score is nan, expected a number in 0"),
        ({"score": 97}, r"objects\[1\]\.score is 97"),
    ],
)
def test_bad_objects_are_named(change, message):
    with pytest.raises(InputError, match=message):
        build_table([OBJECTS[0], OBJECTS[1]._replace(**change)])


def test_other_bad_arguments_are_named():
    with pytest.raises(InputError, match=r"objects\[0\] is of type dict, expected"):
        build_table([{"label": "table row"}])  # pyright: ignore
    with pytest.raises(InputError, match=r"words\[1\] is of type str, expected zoo\.apps\.tables\.Word"):
        build_table(OBJECTS, [WORD, "b"])  # pyright: ignore
    with pytest.raises(InputError, match=r"words\[0\]\.confidence is 96\.0, expected a number in 0"):
        build_table(OBJECTS, [Word("a", (1, 1, 2, 2), 96)])
    with pytest.raises(InputError, match=r"'table rwo', known are .*did you mean 'table row'"):
        build_table(OBJECTS, thresholds={"table rwo": 0.5})
    with pytest.raises(InputError, match=r"thresholds\['table row'\] is 50"):
        build_table(OBJECTS, thresholds={"table row": 50})
    with pytest.raises(InputError, match="box is"):
        build_table(OBJECTS, box=(1, 0, 0, 1))


def test_numbers_of_numpy_do():
    box = tuple(np.array([0, 0, 100, 20], np.float32))
    assert build_table([Detection("table row", np.float32(0.9), box)]).shape == (1, 1)  # pyright: ignore


def test_a_grid_beyond_all_tables_is_refused():
    objects = [Detection("table row", 0.9, (0, r, 9, r + 1)) for r in range(1001)]
    objects += [Detection("table column", 0.9, (c, 0, c + 1, 9)) for c in range(1000)]
    with pytest.raises(InputError, match="1001 rows and 1000 columns"):
        build_table(objects)
    with pytest.raises(InputError, match="9000 objects, at most 8,192"):
        build_table(OBJECTS[:1] * 9000)


def test_words_are_read(tmp_path):
    path = tmp_path / "words.json"
    entries = [GOOD, {"text": "né\n", "box": [1.5, -2, 3, 4], "confidence": 0.25}, {"text": "", "box": [5, 5, 5, 5]}]
    path.write_text(json.dumps(entries), encoding="utf-8")
    assert read_words(path) == [Word("a", (0, 0, 9, 9)), Word("né\n", (1.5, -2, 3, 4), 0.25), Word("", (5, 5, 5, 5))]
    path.write_bytes(b"\xef\xbb\xbf[]")
    assert read_words(str(path)) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a", r"words\[1\] is 'a', expected an object with text and box"),
        ({"text": "a"}, r"words\[1\] has no 'box'"),
        ({"box": [0, 0, 1, 1]}, r"words\[1\] has no 'text'"),
        ({**GOOD, "bbox": [0, 0, 1, 1]}, r"words\[1\] has a key 'bbox', known are .*did you mean 'box'"),
        ({**GOOD, "conf": 1}, r"words\[1\] has a key 'conf', .*did you mean 'confidence'"),
        ({**GOOD, "text": 5}, r"words\[1\]: the text of a word is 5"),
        ({**GOOD, "text": None}, r"words\[1\]: the text of a word is None"),
        ({**GOOD, "box": [0, 0, 1]}, r"words\[1\]: box is \[0, 0, 1\], expected four numbers"),
        ({**GOOD, "box": "0011"}, r"words\[1\]: box is '0011', expected four numbers"),
        ({**GOOD, "box": {"x": 1, "y": 2, "w": 3, "h": 4}}, r"words\[1\]: box is \{.*expected four numbers"),
        ({**GOOD, "box": [0, 0, "1", 1]}, r"words\[1\]: box has x1 = '1'"),
        ({**GOOD, "box": [0, 0, True, 1]}, r"words\[1\]: box has x1 = True"),
        ({**GOOD, "box": [0, 0, None, 1]}, r"words\[1\]: box has x1 = None"),
        ({**GOOD, "box": [5, 0, 1, 1]}, r"words\[1\]: box is \(5\.0, .*with x0 <= x1"),
        ({**GOOD, "confidence": 96}, r"words\[1\]: confidence is 96, expected a number in 0"),
        ({**GOOD, "confidence": None}, r"words\[1\]: confidence is None"),
    ],
)
def test_a_bad_entry_is_named(tmp_path, entry, message):
    path = tmp_path / "words.json"
    path.write_text(json.dumps([GOOD, entry]))
    with pytest.raises(InputError, match=f"words.json: {message}"):
        read_words(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty, expected a JSON list"),
        (b'{"words": []}', "expected a JSON list, found a JSON dict"),
        (b"3", "expected a JSON list, found a JSON int"),
        (b"[", "not JSON"),
        (b'[], "a": [1]', "not JSON"),
        (b'[{"text": "a", "box": [0, 0, NaN, 1]}]', "NaN is not a JSON number"),
        (b'[{"text": "a", "box": [0, 0, 1e999, 1]}]', "beyond a double"),
        (b'[{"text": "a", "text": "b", "box": [0, 0, 1, 1]}]', "'text' occurs twice"),
        (b'[{"text": "\\ud800", "box": [0, 0, 1, 1]}]', "half of a surrogate pair"),
        (b'[{"text": "\xff"}]', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_file_is_named(tmp_path, data, message):
    path = tmp_path / "words.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"words\.json: .*{message}"):
        read_words(path)


def test_a_file_that_is_not_there_or_too_large(tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match=r"words\.json: no such file"):
        read_words(tmp_path / "words.json")
    with pytest.raises(InputError, match="expected a file, found a folder"):
        read_words(tmp_path)
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    (tmp_path / "words.json").write_text(json.dumps([GOOD]))
    with pytest.raises(InputError, match="more than 10 bytes"):
        read_words(tmp_path / "words.json")
