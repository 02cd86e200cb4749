"""The head of the parity page: it says what was compared, by which rule, and whose weights these are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import COMMAND, DIVERGES, FAILED, HOLDS, LOW, Parsed

from parity.cases import Case, kind_of, short_name
from parity.compare import Multiple
from parity.page.overview import rules_of
from parity.page.sections import part_of
from parity.page.texts import runs
from parity.run import Result


def text_of(folder, *results: Result) -> str:
    pytest.importorskip("jinja2", reason="needs jinja2, which makes the page")
    pytest.importorskip("matplotlib", reason="needs matplotlib, which draws the plots")
    from parity.page import write_page

    return Parsed(write_page(folder, results, COMMAND).read_text("utf-8")).text()


@pytest.mark.parametrize("results", [(FAILED,), (FAILED, FAILED), ()])
def test_where_nothing_ran_nothing_was_compared(tmp_path, results):
    text = text_of(tmp_path, *results)
    assert "Nothing was compared" in text
    for claim in ("every stage", "values compared", "What “holds” means", "stages hold", "The words on this page"):
        assert claim not in text, claim
    assert text.count("Could not be run: ConfigError") == len(results)


def test_it_says_of_how_many_models_every_stage_was_compared(tmp_path):
    assert "every stage of every model was compared" in text_of(tmp_path, HOLDS, DIVERGES)
    assert "every stage of 1 of 2 models was compared" in text_of(tmp_path, HOLDS, FAILED)


def test_one_model_is_no_models(tmp_path):
    assert "of 1 model with logits" in text_of(tmp_path, LOW)


def test_the_rule_of_low_precision_has_the_numbers_that_are_applied():
    rule = Multiple(times=4, least=2e-3, spare=0.03, spare_texts=0.7)
    (text,) = rules_of([replace(LOW, tolerance=rule)])
    assert "at most 4 times the error" in text
    assert "which counts as 2e‑03" in text
    assert "4 times as often as transformers’ own, and 3 % of all besides" in text
    assert "4 times as many and 70 % of all besides" in text
    assert rule.allows(4 * 1 + 7, 1, 10, rule.spare_texts)
    assert not rule.allows(4 * 1 + 8, 1, 10, rule.spare_texts)


def test_words_are_explained_where_there_is_something_to_read(tmp_path):
    text = text_of(tmp_path, HOLDS, LOW)
    words = text[text.index("The words on this page") : text.index("Models model")]
    for stage in (*HOLDS.stages, *LOW.stages):
        assert stage.batch.split(", ")[0] in words, stage.batch
    for word in ("rel L2", "max abs", "of scale", "1 − cosine", "top-1", "cached logits", "greedy", "ends", "(hub)"):
        assert word in words, word


def test_a_folder_is_no_promise_of_real_weights(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "page").mkdir()
    names = {
        str(folder): "mine (folder)",
        "./nowhere": "./nowhere (folder)",
        "stories260k": "stories260k (folder)",
        "an-owner/a-model": "an-owner/a-model (hub)",
    }
    assert {name: short_name(Case(name)) for name in names} == names
    assert [kind_of(Case("random:one", size)) for size in ("tiny", "full")] == ["tiny", "full"]
    text = text_of(tmp_path / "page", *(replace(HOLDS, case=Case(name)) for name in names))
    assert "4 checkpoints: 1 from the hub; 3 from a folder, with trained or random weights." in text
    assert "(real)" not in text
    assert "not random" not in text


@pytest.mark.parametrize(
    ("used", "text"), [(0.5, "50 % of the limit"), (1.0001, "101 % of the limit"), (1238, "1,238 times the limit")]
)
def test_a_part_of_the_limit_in_words(used, text):
    assert part_of(used, "the limit") == text


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("  ##ש  0.0029", ["ש"]),
        ("שלום עולם 12 and مرحبا/B-PER  بالعالم/O", ["שלום עולם", "مرحبا", "بالعالم"]),
        ("plain 1.0, Привет 日本", []),
        ("", []),
    ],
)
def test_words_from_right_to_left_are_apart(text, turned):
    assert [part for part, is_turned in runs(text) if is_turned] == turned
    assert "".join(part for part, _ in runs(text)) == text
