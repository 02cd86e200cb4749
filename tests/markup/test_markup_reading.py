"""Documents read by a small random model of images and texts: what it answers is noise, whole pages of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from tests.image_text_checkpoint import (
    write_image_text_checkpoint,
    write_lighton_ocr_checkpoint,
    write_qwen_vl_checkpoint,
)
from tests.small_pdf import pdf, text
from zoo.apps.cli import main
from zoo.apps.documents import open_document
from zoo.apps.markup import read_document, read_markup
from zoo.apps.markup.otsl import CELL_TAGS, RAGGED_ROWS, TORN_SPAN
from zoo.apps.markup.reading import DOCTAGS_PROMPT, MARKDOWN_PROMPT, NO_ANSWER, prompt_for, read_page
from zoo.errors import InputError
from zoo.generate.table_tags import TableTags

FEW_TOKENS = ["--max-new-tokens", "9"]
TAGS = [f"<{name}>" for name in CELL_TAGS if name != "fcel"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = write_image_text_checkpoint(tmp_path_factory.mktemp("reading") / "model", more=TAGS)
    (folder.parent / "two.pdf").write_bytes(pdf([text(40, 100, "One"), text(40, 100, "Two")]))
    pixels = np.random.default_rng(0).integers(0, 256, (40, 70, 3), np.uint8)
    Image.fromarray(pixels).save(folder.parent / "page.png")
    return folder


@pytest.fixture(scope="module")
def task(folder) -> Any:
    return zoo.load(folder)


def test_a_document_is_what_the_model_answers_about_each_page(folder, task):
    path = folder.parent / "two.pdf"
    found = read_document(path, task, max_new_tokens=40)
    with open_document(path) as document:
        answers = [task(page.image, DOCTAGS_PROMPT, max_new_tokens=40) for page in document.pages()]
    pages = [read_markup(answer) for answer in answers]
    wanted = [(block.kind, block.text, i) for i, page in enumerate(pages, 1) for block in page.blocks]
    assert [(block.kind, block.text, block.page) for block in found.blocks] == wanted
    assert found.source == str(path)
    assert all(doubt.startswith(("page 1: ", "page 2: ")) for doubt in found.doubts)
    assert read_document(path, folder, pages="2", max_new_tokens=40).blocks == tuple(
        block for block in found.blocks if block.page == 2
    )


def test_an_answer_that_is_cut_off_says_so(folder, task):
    image = np.zeros((30, 30, 3), np.uint8)
    (only,) = [doubt for doubt in read_page(task, image, max_new_tokens=3).doubts if "cut off" in doubt]
    assert only == "the answer was cut off after 3 tokens"
    ids = task.chat_ids([{"role": "user", "content": [{"type": "image", "image": image}]}], {})[0]
    all_room = read_page(task, image, prompt="").doubts  # up to the end of the context
    assert not any("cut off" in doubt for doubt in all_room) or f"{task.max_tokens - len(ids):,} tokens" in all_room[0]


def test_an_empty_answer_says_so(task):
    image = np.zeros((30, 30, 3), np.uint8)
    end = task.generation.eos_token_id[0]
    own = task.generation
    task.generation = own.replace(logit_bias={end: 100.0}, table_tags=None)
    try:
        assert read_page(task, image).doubts == (NO_ANSWER,)
    finally:
        task.generation = own


def test_prompts_are_those_of_the_model(task, tmp_path):
    assert prompt_for(task) == DOCTAGS_PROMPT
    folder = write_qwen_vl_checkpoint(tmp_path / "qwen")
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"<otsl>"', '"<other>"'))
    assert prompt_for(zoo.load(folder)) == MARKDOWN_PROMPT
    assert prompt_for(zoo.load(write_lighton_ocr_checkpoint(tmp_path / "lighton"))) == ""


def test_other_models_are_refused(task, folder):
    with pytest.raises(InputError, match="stories260k is a checkpoint for generate, expected one for image-text-to-t"):
        read_document(folder.parent / "page.png", "stories260k")
    with pytest.raises(InputError, match="device: the model is loaded"):
        read_document(folder.parent / "page.png", task, device="cpu")


def test_random_weights_write_tables_whose_rows_have_one_length(task):
    """Of random pictures and samples; a table that is cut off has a shorter last row."""
    tags, tables = task.generation.table_tags, 0
    names = task.tokenizer.added_tokens()
    assert isinstance(tags, TableTags)
    bias = {token: 5.0 for name, token in names.items() if name in ("<otsl>", "</otsl>", "<nl>", "<fcel>", *TAGS)}
    for seed in range(4):
        image = np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8)
        answer = task(image, "Go.", max_new_tokens=150, do_sample=True, seed=seed, top_k=0, logit_bias=bias)
        for part in answer.split("<otsl>")[1:]:
            whole, is_closed, _ = part.partition("</otsl>")
            if not is_closed:
                whole = whole[: whole.rfind("<nl>") + 4] if "<nl>" in whole else ""
            for tag in ("<ched>", "<rhed>", "<srow>"):  # which end a header, and with it the spans in it
                whole = whole.replace(tag, "<fcel>")
            doubts = read_markup(f"<otsl>{whole}</otsl>").doubts
            assert RAGGED_ROWS not in doubts
            assert TORN_SPAN not in doubts
            tables += bool(whole)
    assert tables >= 4


def test_the_command_writes_each_form(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    common = ["--model", "model", "--device", "cpu", "--max-new-tokens", "30"]
    found = read_document("page.png", folder, max_new_tokens=30, device="cpu")
    assert main(["read", "page.png", *common]) == 0
    out = capsys.readouterr()
    assert out.out == found.to_markdown()
    assert "zoo: page.png: the answer was cut off after 30 tokens" in out.err
    assert main(["read", "page.png", "two.pdf", "--json", *common]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first == json.loads(found.to_json())
    assert (second["source"], {block["page"] for block in second["blocks"]}) == ("two.pdf", {1, 2})
    assert main(["read", "two.pdf", "page.png", "-o", "out.html", *common]) == 0
    written = Path("out.html").read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    assert written.index("<!-- two.pdf -->") < written.index("<!-- page.png -->")
    found.save("saved.md")
    assert Path("saved.md").read_text(encoding="utf-8") == found.to_markdown()
    with pytest.raises(InputError, match=r"saved\.txt: expected a name in \.md, \.html, \.json"):
        found.save("saved.txt")


def test_one_bad_document_does_not_stop_the_others(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    Path("broken.png").write_bytes(b"no picture")
    assert (
        main(["read", "broken.png", "page.png", "--model", "model", "--device", "cpu", "-o", "out.json", *FEW_TOKENS])
        == 1
    )
    err = capsys.readouterr().err
    assert "broken.png" in err
    assert "1 error: what could not be read is left out" in err
    assert [one["source"] for one in json.loads(Path("out.json").read_text(encoding="utf-8"))] == ["page.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["page.png"], "the following arguments are required: --model"),
        (["page.png", "--model", "model", "-o", "out.docx"], "expected one of .md, .html, .json"),
        (["page.png", "--model", "model", "-o", "out.md", "--json"], "are for stdout"),
        (["page.png", "--model", "stories260k"], "is a checkpoint for generate"),
        (["page.png", "--model", "model", "--max-new-tokens", "9999"], "has room for"),
        (["none.png", "--model", "model"], "none.png"),
    ],
)
def test_bad_arguments(folder, capsys, monkeypatch, arguments: list[str], message: str):
    monkeypatch.chdir(folder.parent)
    try:
        status = main(["read", *arguments])
    except SystemExit as e:
        status = e.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err
