"""Text in a script that zoo-read does not know is said to be one, and is never sure Latin text."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.kinds import nights
from zoo.apps.cli import main
from zoo.apps.tables import Table
from zoo.apps.tables.extract import UNKNOWN_SCRIPT
from zoo.errors import ConfigError
from zoo.files.folder import CheckpointFolder
from zoo.tasks.line_texts import LineReading
from zoo.tasks.scripts import FILE, ScriptCheck, line_features

DATA = Path(__file__).parent.parent / "data"
SHIPPED = Path(zoo.__file__).parent / "data" / "zoo-read"
SCRIPTS = ["arabic", "chinese", "cyrillic", "greek", "hebrew", "hindi", "korean", "thai"]
SAID = r"a script or a hand that zoo-read cannot read \(it knows Latin print\).* --ocr rapidocr"


@pytest.fixture(scope="module")
def extract() -> zoo.TableExtractor:
    return zoo.TableExtractor(detection=None)


def picture(name: str) -> Path:
    """A table of names of towns and regions, with numbers in the third column."""
    return DATA / "scripts" / f"{name}.png"


@pytest.mark.parametrize("name", SCRIPTS)
def test_cells_of_another_script_are_doubtful(name: str, extract: zoo.TableExtractor) -> None:
    with pytest.warns(UserWarning, match=SAID) as caught:
        (table,) = extract(picture(name))
    assert len(caught) == 1
    doubted = [cell for cell in table.cells if UNKNOWN_SCRIPT in cell.doubts]
    lettered = [cell for cell in table.cells if any(map(str.isalpha, cell.text))]
    assert len(lettered) >= 8
    assert len(doubted) >= 0.8 * len(lettered)
    assert all(cell.confidence <= 0.5 for cell in doubted)
    assert Table.from_json(table.to_json()).cells == table.cells
    numbers = [cell for cell in table.cells if cell.text.replace(",", "").isdigit() and cell.column == 2]
    assert not any(UNKNOWN_SCRIPT in cell.doubts for cell in numbers)


@pytest.mark.parametrize("name", nights(SCRIPTS, ["chinese", "cyrillic"]))
def test_a_page_of_another_script_is_said_to_be_one(name: str) -> None:
    """A detector may leave the table out, but not without the reason."""
    with pytest.warns(UserWarning, match=SAID):
        tables = zoo.extract_tables(picture(name))
    lettered = [cell for table in tables for cell in table.cells if any(map(str.isalpha, cell.text))]
    assert sum(UNKNOWN_SCRIPT in cell.doubts for cell in lettered) >= 0.8 * len(lettered)


def test_latin_text_has_no_such_doubt(extract: zoo.TableExtractor) -> None:
    read = zoo.load("zoo-read", task="read")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for path in (picture("latin"), *sorted((DATA / "tables").glob("*.png"))):
            assert not any(UNKNOWN_SCRIPT in table.all_doubts for table in extract(path)), path
        for name in ("candle_noto", "ocropy_1241-010032"):
            assert read(DATA / "text_lines" / f"{name}.png").confidence > 0.9
    assert not any("script" in str(one.message) for one in caught)


def test_the_task_and_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = zoo.load("zoo-read", task="read")
    assert read.scripts is not None
    assert read.scripts.scripts == ("Latin",)
    with pytest.warns(UserWarning, match=SAID):
        unknown, known = read([picture("hindi"), DATA / "text_lines" / "candle_noto.png"], lines=True)
    assert unknown.confidence <= 0.5 < 0.8 < known.confidence
    assert main(["run", "zoo-read", str(picture("chinese")), "--lines", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "a script or a hand that zoo-read cannot read" in err
    assert json.loads(out)["confidence"] <= 0.5


def test_one_message_for_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    page = Image.open(picture("cyrillic"))
    page.save(tmp_path / "scan.tiff", save_all=True, append_images=[page, page])
    shutil.copy(picture("latin"), tmp_path)
    command = ["table", str(tmp_path), "--no-detection", "-o", str(tmp_path / "out.json")]
    assert main(command) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot read (it knows" in line]
    assert len(said) == 1
    assert "scan.tiff: there is text" in said[0]


def test_a_checkpoint_keeps_its_check(tmp_path: Path) -> None:
    read = zoo.load("zoo-read", task="read")
    read.save(tmp_path / "saved")
    assert (tmp_path / "saved" / FILE).read_bytes() == (SHIPPED / FILE).read_bytes()
    (tmp_path / "saved" / FILE).unlink()
    alone = zoo.load(tmp_path / "saved", task="read")
    assert alone.scripts is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert alone(picture("cyrillic"), lines=True).text


def test_the_check_was_fitted_to_the_weights_that_are_shipped() -> None:
    import hashlib

    data = json.loads((SHIPPED / FILE).read_text(encoding="utf-8"))
    assert data["model"] == hashlib.sha256((SHIPPED / "model.safetensors").read_bytes()).hexdigest(), (
        "python -m training.scripts fits the check to a new zoo-read"
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"weights": [1.0] * 7}, r"weights has the shape \(7,\), expected \(132,\)"),
        ({"bias": "much"}, "a field is missing or wrong"),
        ({"line_limit": None}, "a field is missing or wrong"),
    ],
)
def test_wrong_files(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    data = json.loads((SHIPPED / FILE).read_text(encoding="utf-8"))
    (tmp_path / FILE).write_text(json.dumps(data | change), encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        ScriptCheck.from_folder(CheckpointFolder(tmp_path), 128)


def check(**limits: float) -> ScriptCheck:
    return ScriptCheck(
        ("Latin",), np.zeros(6), 0.0, **{"line_limit": 4.0, "mean_limit": 0.0, "marked_limit": -2.0, **limits}
    )


def lines_of(*pairs: tuple[str, float]) -> list[LineReading]:
    return [LineReading(text, 0.9, odds) for text, odds in pairs]


def test_lines_are_judged_together() -> None:
    some = lines_of(*[("abc", 2.0)] * 9, ("12", 3.0), ("def", -1.0), ("BMW", -3.0))
    assert check().find_unknown(some) == [True] * 9 + [False, True, False]
    assert check().find_unknown(some[:1]) == [False]  # one line by itself needs more
    assert check().find_unknown(lines_of(("abc", 4.5), *[("def", -4.0)] * 9)) == [True] + [False] * 9
    assert check().find_unknown(lines_of(("x1", 9.0))) == [False]  # too little ink
    assert check().find_unknown(lines_of(("", -np.inf), ("12", 1.0))) == [False, False]
    assert check().find_unknown([]) == []


def test_features_are_of_the_ink_in_the_part_that_the_line_fills() -> None:
    states = np.arange(22.0).reshape(11, 2)
    line = np.full((20, 100, 3), 255, np.uint8)
    line[5:15, 20:60] = 30  # the second and third of five slices
    found = line_features(line, states, 0.5, np.log([0.5, 0.25, 1.0]), "abcd")
    np.testing.assert_allclose(found[:2], states[2:4].mean(0))
    np.testing.assert_allclose(found[2:], [np.log(0.125) / 3, np.log(0.25), np.log(0.5), 0.8])
    assert np.isfinite(line_features(line[:, :3], states, 1.0, np.log([0.5]), "")).all()  # fewer columns than slices
