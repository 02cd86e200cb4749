"""The parity report as a page: everything is said, nothing is executed."""

from __future__ import annotations

import base64
import io
import math
import re
import shlex
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import COMMAND, DIVERGES, FAILED, HOLDS, LOW, NAN, STAGES, Parsed, image, write
from PIL import Image

from parity.__main__ import _parser
from parity.cases import Case, kind_of, short_name
from parity.compare import Multiple, Stage
from parity.page import MissingToolError, command_for, curve, differences, runs, sentence, times, visible, write_page
from parity.report import rules_of
from parity.run import run

NEEDS_JINJA = "needs jinja2, which makes the page"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    pytest.importorskip("jinja2", reason=NEEDS_JINJA)
    return write(tmp_path_factory.mktemp("page") / "new").read_text("utf-8")


def test_all_facts_are_there(page):
    text = Parsed(page).text()
    for fact in (
        "3 of 5 hold, 1 diverges, 1 could not be run",
        "at most 1e‑05 of the stage’s own size",
        "at most 3 times the error that transformers itself makes in bfloat16 (which counts as 1.5e‑03",
        "The first stage that diverges is layer.1, 4 of 5, in the batch “alone”: its error is 3,200 times its limit.",
        "All 5 stages hold. logits is nearest to its limit: 0.09 of it.",
        "layer.1 is nearest to its limit: 0.50 of it.",
        "random:two (full) BertForMaskedLM ✗ diverges 4.0e-02 5,000 × 99.9 %",
        "random:low (tiny) BertForMaskedLM ✓ holds 7.0e-03 0.50 × 98.4 %",
        "0123456789abcdef" * 4,
        "415,832",
        "sha256:" + "cd" * 32,
        "a" * 40,
        "torch on torch:cpu",
        "zoo parity random:two --full --seed 3",
        COMMAND,
        "layer.1 3.2e-02 5.0e-01 2.5e-01 1.0e-13 alone ✗ diverges here first <i>a note</i>",
        "embeddings 0 0 0 0 pairs",
        "logits 7.0e-03 7.7e-03 2.0e-06 4.0e-13 98.4 % 98.1 % longest",
        "written, greedy 0.0 % 50.0 % padded 4 of 4 rows differ",
        "zoo in bfloat16",
        "Could not be run: ConfigError",
    ):
        assert fact in text, fact


def test_what_fails_comes_first_and_is_open(page):
    parsed = Parsed(page)
    names = [text for path, text in parsed.texts if "a" in path and "bdi" in path]
    assert names[0] == "random:two (full)"
    assert names[1].startswith("x</script>")
    assert names[2:] == ["random:one (tiny)", "random:low (tiny)", "random:seen (tiny)"]
    sections = [one for one in parsed.attributes("details") if one["class"] == "model"]
    assert ["open" in one for one in sections] == [True, True, False, False, False]


@pytest.mark.parametrize("results", [(FAILED,), (FAILED, FAILED), ()])
def test_where_nothing_ran_nothing_was_compared(tmp_path, results):
    pytest.importorskip("jinja2", reason=NEEDS_JINJA)
    text = Parsed(write_page(tmp_path, results, COMMAND).read_text("utf-8")).text()
    assert "Nothing was compared" in text
    for claim in ("every stage", "The words on this page"):
        assert claim not in text, claim
    assert text.count("Could not be run: ConfigError") == len(results)


def test_it_stands_alone(page):
    parsed = Parsed(page)
    assert parsed.declared == "DOCTYPE html"
    names = {name for name, _ in parsed.tags}
    assert not names & {"script", "iframe", "object", "embed", "form", "base"}
    assert [link["href"] for link in parsed.attributes("link")] == ["data:,"]
    policy = next(meta["content"] for meta in parsed.attributes("meta") if meta.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    style = parsed.text("style")
    assert "@import" not in style
    assert "url(" not in style
    idents = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(idents) == len(set(idents))
    for tag, attributes in parsed.tags:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("href", "src"):
            target = attributes.get(name, "data:")
            assert target.startswith("data:") or target.removeprefix("#") in idents, (tag, name, target)


def test_names_and_notes_are_text(page):
    parsed = Parsed(page)
    assert "alert" not in "".join(str(attributes) for tag, attributes in parsed.tags if tag != "svg")
    assert "x</script><script>alert('name')</script>" in parsed.text("h3")
    assert "{{ 7 * 7 }}" in parsed.text("h3")
    assert "\u202e" not in page  # which would turn around what follows
    assert "zoo parity 'x</script>" in parsed.text("pre")


def test_exhibits_are_side_by_side_with_what_differs(page):
    parsed = Parsed(page)
    images = parsed.attributes("img")
    assert len(images) == 4
    assert [one["alt"] for one in images[:2]] == [
        f"Objects: what {who} finds, drawn into the image" for who in ("zoo", "transformers")
    ]
    assert base64.b64decode(images[1]["src"].partition(",")[2]) == image(4)
    both = [np.asarray(Image.open(io.BytesIO(image(shift)))) for shift in (0, 4)]
    count = int((both[0] != both[1]).any(-1).sum())
    assert count > 100
    assert f"Objects {count:,} of 76,800 pixels differ Mask identical greedy, lines identical" in parsed.text("h4")
    marks = [text for path, text in parsed.texts if "mark" in path]
    assert marks == ["<b>jumps", "brown ", "jumped", "a␀b"]
    assert "what it reads differ in 2 places" in parsed.text("h4")


def test_a_curve_shows_each_stage_with_numbers_higher_for_a_larger_error():
    drawn = curve(HOLDS)
    marks = drawn["lines"]["zoo"]["marks"]
    assert [text for *_, text in marks] == [
        "embeddings: 0.0e+00", "layer.0: 3.2e-07", "layer.1: 4.5e-07", "logits: 9.2e-07"
    ]  # fmt: skip
    heights = [y for _, y, _ in marks]
    assert heights == sorted(heights, reverse=True)  # SVG counts from the top
    assert [name for _, name in drawn["names"]] == ["embeddings", "layer.0", "layer.1", "logits"]
    decades = {text: y for y, text in drawn["ticks"]}
    assert heights[0] == decades["0"]
    assert decades["1e-7"] > heights[1] > heights[3] > decades["1e-6"]
    assert re.findall(r"M\S+ (\S+?)h", drawn["limits"]) == [str(decades["1e-5"])] * 4
    assert drawn["diverged"] is None


def test_a_curve_marks_the_stage_that_diverges():
    drawn = curve(DIVERGES)
    left, width = drawn["diverged"]
    inside = [left < x < left + width for x, *_ in drawn["lines"]["zoo"]["marks"]]
    assert inside == [False, False, True, False]


def test_a_stage_without_numbers_is_marked_and_leaves_a_gap():
    nothing = Stage("layer.0", "alone", 0, NAN, NAN, NAN, NAN, None, False, "NaN or infinity, expected finite values")
    broken = replace(HOLDS, stages=(STAGES[1], nothing, replace(STAGES[3], relative_l2=math.inf, holds=False)))
    drawn = curve(broken)
    assert [y for _, y, _ in drawn["lines"]["zoo"]["marks"]] == [150, 0]
    assert drawn["lines"]["zoo"]["path"].count("M") == 2
    assert drawn["diverged"] is not None
    assert sentence(broken).endswith("in the batch “alone”: NaN or infinity, expected finite values.")
    only = replace(HOLDS, stages=(replace(STAGES[0], holds=False, top1=0.5),))
    assert sentence(only) == (
        "The first stage that diverges is tokenizer, 1 of 1, in the batch “padded”: top-1 agreement is 50.0 %."
    )
    assert curve(only) == {}
    assert curve(FAILED) == {}


def test_a_curve_of_low_precision_has_both_errors_and_a_limit_for_each_stage():
    drawn = curve(LOW)
    assert list(drawn["lines"]) == ["transformers", "zoo"]
    assert [len(line["marks"]) for line in drawn["lines"].values()] == [4, 4]
    assert len(set(re.findall(r"M\S+ (\S+?)h", drawn["limits"]))) == 4


def test_many_stages_are_not_all_named():
    layers = tuple(replace(STAGES[2], name=f"layer.{i}", holds=i != 30) for i in range(40))
    names = [name for _, name in curve(replace(HOLDS, stages=layers))["names"]]
    assert len(names) <= 20
    assert {"layer.0", "layer.30"} <= set(names)


FOLDER, LOCKED = Case("a folder/b"), Case("an-owner/b", lock_file="a lock", revision="main")


@pytest.mark.parametrize("result", [HOLDS, DIVERGES, LOW, FAILED, *(replace(HOLDS, case=c) for c in (FOLDER, LOCKED))])
def test_the_command_gives_the_same_case(result):
    words = shlex.split(command_for(result))
    assert words[:2] == ["zoo", "parity"]
    options = _parser().parse_args(words[2:])
    assert options.names == [result.case.name]
    assert options.full is (result.case.size == "full")
    commit = result.revision if result.case.revision else None  # what "main" stood for
    assert (options.lock, options.revision) == (result.case.lock_file, commit)
    assert (options.device or "cpu", options.dtype) == (result.device or "cpu", result.dtype or "float32")
    assert options.seed == result.seed


@pytest.mark.parametrize(
    ("used", "text"),
    [(0, "0.00"), (1e-9, "0.00"), (0.0999, "0.09"), (0.9999, "0.99"), (1, "1.00"), (1.0001, "1.01"), (1238, "1,238")],
)
def test_no_rounding_crosses_the_limit(used, text):
    assert times(used) == text


def test_the_rule_of_low_precision_has_the_numbers_that_are_applied():
    rule = Multiple(times=4, least=2e-3, spare=0.03, spare_texts=0.7)
    (text,) = rules_of([replace(LOW, tolerance=rule)])
    assert "at most 4 times the error" in text
    assert "which counts as 2e‑03" in text
    assert "4 times as often as transformers’ own, and 3 % of all besides" in text
    assert "4 times as many and 70 % of all besides" in text
    assert rule.allows(4 * 1 + 7, 1, 10, rule.spare_texts)
    assert not rule.allows(4 * 1 + 8, 1, 10, rule.spare_texts)


def test_a_folder_is_no_promise_of_real_weights(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    names = {
        str(folder): "mine (folder)",
        "./nowhere": "./nowhere (folder)",
        "stories260k": "stories260k (folder)",
        "an-owner/a-model": "an-owner/a-model (hub)",
    }
    assert {name: short_name(Case(name)) for name in names} == names
    assert [kind_of(Case("random:one", size)) for size in ("tiny", "full")] == ["tiny", "full"]


TEXTS = st.lists(st.sampled_from(["a", "b", " ", "  ", "\n", "é", "zoo", ".", "日本", "\x00"])).map("".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_differences_keep_the_texts_and_mark_what_is_not_common(ours, reference):
    left, right = differences(ours, reference)
    assert ["".join(text for text, _ in side) for side in (left, right)] == [ours, reference]
    common = ["".join(text for text, marked in side if not marked) for side in (left, right)]
    assert common[0] == common[1]
    assert any(marked for _, marked in (*left, *right)) == (ours != reference)


def test_differences_are_words():
    left, right = differences("the quick fox", "the quick brown foxes")
    assert [text for text, marked in left if marked] == ["fox"]
    assert [text for text, marked in right if marked] == ["brown foxes"]


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


def test_what_is_not_shown_by_html_has_a_symbol():
    assert visible("a\x00b\x1f\tc\u202ed\ud800") == "a␀b␟\tc\ufffdd\ufffd"


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingToolError, match=r"needs jinja2.*pip install 'transformers-zoo\[parity\]'"):
        write(tmp_path)


def test_a_real_result_is_shown(tmp_path):
    pytest.importorskip("jinja2", reason=NEEDS_JINJA)
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    result = run(Case("random:bert-base-NER", "tiny"), exhibits=True)
    text = Parsed(write_page(tmp_path, [result], "").read_text("utf-8")).text()
    assert "1 of 1 hold" in text
    assert result.files[0].sha256 in text
    for stage in result.stages:
        assert stage.name in text
