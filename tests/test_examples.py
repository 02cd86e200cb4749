"""The programs in examples/ do what they say, on small models."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint

import zoo
from tests.small_pdf import line, pdf, text

EXAMPLES = str(Path(__file__).parent.parent / "examples")


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is on the path."""
    monkeypatch.syspath_prepend(EXAMPLES)


def test_search_over_a_folder_of_pdfs(minilm: Path, tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip("pypdfium2", reason="needs pypdfium2, which reads PDFs")
    search = importlib.import_module("search_pdfs")
    (tmp_path / "pets.pdf").write_bytes(
        pdf([text(20, 100, "A kitten sleeps on the rug."), text(20, 100, "Dogs bark.")])
    )
    (tmp_path / "money.pdf").write_bytes(pdf([text(20, 100, "Stocks fell by two percent on Monday.")]))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    index = search.Index(tmp_path, str(minilm))
    assert "left out: " in capsys.readouterr().out
    assert [(hit.file, hit.page) for hit in index.search("a cat", 2)] == [("pets.pdf", 1), ("pets.pdf", 2)]
    monkeypatch.setattr(search, "passages", lambda folder: pytest.fail("the vectors are kept"))
    monkeypatch.setattr("sys.argv", ["search_pdfs.py", str(tmp_path), "shares", "--checkpoint", str(minilm)])
    search.main()
    assert "money.pdf, page 1: Stocks fell" in capsys.readouterr().out.splitlines()[0]


def test_invoices_become_one_spreadsheet(tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip("pypdfium2", reason="needs pypdfium2, which reads PDFs")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    pytest.importorskip("openpyxl", reason="needs openpyxl, which writes XLSX")
    folder = tmp_path / "in"
    folder.mkdir()
    for name, rows in {"a": [("Nails", "120", "4.80")], "b": [("Glue", "2", "7.15"), ("Paint", "1", "31.90")]}.items():
        cells = [("Item", "Count", "Price"), *rows]
        xs, ys = (40, 180, 260, 340), [700 - 24 * i for i in range(len(cells) + 1)]
        content = "".join(
            text(xs[j] + 6, ys[i] - 17, cell) for i, row in enumerate(cells) for j, cell in enumerate(row)
        )
        content += "".join(line(x, ys[0], x, ys[-1]) for x in xs) + "".join(line(xs[0], y, xs[-1], y) for y in ys)
        (folder / f"{name}.pdf").write_bytes(pdf([content], size=(400, 800)))
    (folder / "c.pdf").write_bytes(b"%PDF-1.7 nothing")
    monkeypatch.setattr("sys.argv", ["invoices.py", str(folder), str(tmp_path / "out.xlsx")])
    importlib.import_module("invoices").main()
    printed = capsys.readouterr().out
    assert "left out: " in printed
    assert "3 rows of 2 files" in printed
    found = pd.read_excel(tmp_path / "out.xlsx")
    assert found["Item"].tolist() == ["Nails", "Glue", "Paint"]
    assert found["Price"].tolist() == [4.80, 7.15, 31.90]
    assert found["file"].tolist() == ["a.pdf", "b.pdf", "b.pdf"]


def test_a_chat_with_a_gguf_file(tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip("gguf", reason="needs gguf, which writes the file")
    pytest.importorskip("jinja2", reason="needs jinja2, for the chat template")
    from zoo.apps.gguf_export.export import export

    file = tmp_path / "model.gguf"
    export(zoo.load(write_chat_checkpoint(tmp_path / "chat")), file)
    chat = importlib.import_module("chat_gguf")
    monkeypatch.setattr("sys.stdin", Lines("the cat\n", "\n", "and?\n"))
    monkeypatch.setattr("sys.argv", ["chat_gguf.py", str(file), "--max-new-tokens", "4"])
    chat.main()
    talk = zoo.load(str(file)).conversation(None, max_new_tokens=4)
    said = ["".join(talk.say(question)) for question in ("the cat", "and?")]
    assert capsys.readouterr().out == f"> {said[0]}\n> > {said[1]}\n> "


class Lines:
    """A file of lines."""

    def __init__(self, *lines: str):
        self.lines = iter(lines)

    def readline(self) -> str:
        return next(self.lines, "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*drawn at random", "ignore:.*does not know")
def test_a_classifier_is_trained_and_measured(tmp_path: Path):
    pytest.importorskip("torch", reason="training needs torch")
    from parity.checkpoints import build

    data = tmp_path / "reviews.csv"
    rows = [(f"the weather is lovely {'today ' * (i % 4)}", "weather") for i in range(10)]
    rows += [(f"he works in the hospital {'now ' * (i % 4)}", "work") for i in range(10)]
    with data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    settings = {"batch_size": 8, "learning_rate": 3e-3, "schedule": "constant"}
    train = importlib.import_module("classifier").train
    model = str(build("bert-base-uncased", tmp_path / "bert"))
    assert train(data, tmp_path / "out", model, steps=20, settings=settings, device="torch:cpu") == 1
    assert not list(tmp_path.glob("*.train.csv"))


def test_a_service_imports_a_single_model(minilm: Path, monkeypatch):
    pytest.importorskip("fastapi", reason="needs fastapi")
    monkeypatch.setenv("MODEL", str(minilm))
    monkeypatch.delitem(sys.modules, "service", raising=False)
    service = importlib.import_module("service")
    texts = ["A cat sits on the mat.", "A kitten rests on a rug, and then it sleeps."]
    found = service.embed(service.Texts(texts=texts))["vectors"]
    np.testing.assert_allclose(found, zoo.load(str(minilm))(texts), atol=1e-6)
    assert service.health() == {"model": str(minilm)}
    with pytest.raises(ValueError, match="at least 1 item"):
        service.Texts(texts=[])
