"""The parity report as a page: everything is said, nothing is executed, and it can be read on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
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
from made_up import COMMAND, DIVERGES, FAILED, HOLDS, LOW, NAN, STAGES, Parsed, image, with_exhibits, write
from PIL import Image

from parity.__main__ import _parser
from parity.cases import Case
from parity.compare import Stage
from parity.page.sections import command_for, section, sentence, times_of
from parity.page.texts import differences, visible
from parity.run import Result


@pytest.fixture(autouse=True)
def _tools():
    pytest.importorskip("jinja2", reason="needs jinja2, which makes the page")
    pytest.importorskip("matplotlib", reason="needs matplotlib, which draws the plots")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    return write(tmp_path_factory.mktemp("page") / "new").read_text("utf-8")


def test_all_facts_are_there(page):
    text = Parsed(page).text()
    for fact in (
        "3 of 5 hold 1 diverges, 1 could not be run",
        "NumPy on cpu, in float32; torch on torch:cpu, in bfloat16",
        "at most 1e‑05 of the stage’s own size",
        "at most 3 times the error that transformers itself makes in bfloat16 (which counts as 1.5e‑03",
        "4 checkpoints: 1 with random weights at full size, in the layout of the checkpoint of that name; "
        "3 with random weights at a tiny size",
        "The first stage that diverges is layer.1, 4 of 5, in the batch “alone”: its relative L2 error is 3.2e‑02, "
        "3,200 times what is allowed.",
        "All 5 stages hold. logits is nearest to its limit: its relative L2 error is 9.2e‑07, 9 % of what is allowed.",
        "6.0e‑03, 1.50 times the 4.0e‑03 of transformers in bfloat16",
        "BertForMaskedLM at worst 50 % of the limit",
        "BertForMaskedLM at worst 5,000 times the limit",
        "lowest top-1 of logits 98.4 % of 4 models with logits",
        "fewest written rows alike 0.0 % “written, greedy” of random:low (tiny)",
        "0123456789abcdef" * 4,
        "415,832",
        "sha256:" + "cd" * 32,
        "a" * 40,
        "zoo parity random:two --full --seed 3",
        COMMAND,
        "99.9 %",
        "98.4 % 98.1 %",
        "layer.1 diverges here first worst in alone. <i>a note</i> "  # which phones show
        "3.2e-02 5.0e-01 2.5e-01 1.0e-13 alone diverges here first <i>a note</i>",
        "embeddings worst in pairs 0 0 0 0 pairs",
        "written, greedy top-1 0.0 %, transformers’ 50.0 %, worst in padded. 4 of 4 rows differ",
        "Could not be run: ConfigError",
    ):
        assert fact in text, fact


def test_what_fails_comes_first_and_is_open(page):
    parsed = Parsed(page)
    cells = [path_text for path_text in parsed.texts if "a" in path_text[0] and "bdi" in path_text[0]]
    names = [text for _, text in cells]
    assert names[0] == "random:two (full)"
    assert names[1].startswith("x</script>")
    assert names[2:] == ["random:one (tiny)", "random:low (tiny)", "random:seen (tiny)"]
    sections = [one for one in parsed.attributes("details") if one["class"] != "words"]
    assert ["open" in one for one in sections] == [True, True, False, False, False]
    assert [one["class"] for one in sections] == ["model diverges", "model failed", *["model holds"] * 3]


def test_it_stands_alone(page):
    parsed = Parsed(page)
    assert parsed.declared == "DOCTYPE html"
    names = {name for name, _ in parsed.tags}
    assert not names & {"script", "iframe", "object", "embed", "form", "base"}
    assert [link["href"] for link in parsed.attributes("link")] == ["data:,"]
    policy = next(meta["content"] for meta in parsed.attributes("meta") if meta.get("http-equiv"))
    style = parsed.text("style")
    digest = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert digest is not None
    assert base64.b64encode(hashlib.sha256(digest[1].encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "@import" not in style
    assert "url(" not in style
    idents = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(idents) == len(set(idents))
    for tag, attributes in parsed.tags:
        assert "style" not in attributes, tag  # which the policy forbids
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("href", "src", "xlink:href", "clip-path"):
            target = attributes.get(name, "data:").removeprefix("url(").removesuffix(")")
            assert target.startswith("data:") or target.removeprefix("#") in idents, (tag, name, target)
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, idents[0]) in idents


def test_names_and_notes_are_text(page):
    parsed = Parsed(page)
    assert "alert" not in "".join(str(attributes) for tag, attributes in parsed.tags if tag not in ("div", "a"))
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


def test_exhibits_of_low_precision_say_in_which():
    shown = section(1, replace(LOW, exhibits=with_exhibits().exhibits)).exhibits[0]
    assert shown.sides == ("zoo in bfloat16", "transformers in float32")


def plot_of(result: Result) -> Parsed:
    return Parsed(section(1, result).plot)


def heights(plot: Parsed) -> list[float]:
    return [float(use["y"]) for use in plot.attributes("use")]


def test_a_plot_shows_each_stage_with_numbers_higher_for_a_larger_error():
    plot = plot_of(HOLDS)
    assert plot.attributes("svg")[0]["role"] == "img"
    titles = [text for path, text in plot.texts if path[-2:] == ("use", "title")]
    assert titles == ["embeddings: 0.0e+00", "layer.0: 3.2e-07", "layer.1: 4.5e-07", "logits: 9.2e-07"]
    assert heights(plot) == sorted(heights(plot), reverse=True)
    labels = [text for path, text in plot.texts if path[-1] == "text"]
    assert labels[:5] == ["embeddings", "layer.0", "layer.1", "logits", "0"]
    assert "limit 1e-05" in labels
    assert "diverged" not in [group.get("class") for group in plot.attributes("g")]


def test_a_plot_marks_the_stage_that_diverges():
    plot = plot_of(DIVERGES)
    labels = [text for path, text in plot.texts if path[-1] == "text"]
    assert "✗ diverges here" in labels
    assert "The first stage that diverges is layer.1." in plot.text("desc")
    at = next(i for i, (_, attributes) in enumerate(plot.tags) if attributes.get("class") == "diverged")
    left, right = (float(x) for x in re.findall(r"[ML] ([\d.]+) ", plot.tags[at + 1][1]["d"])[:2])
    points = [float(use["x"]) for use in plot.attributes("use")]
    assert [left < x < right for x in points] == [False, False, True, False]


def test_a_stage_without_numbers_is_marked_and_leaves_a_gap():
    nothing = Stage("layer.0", "alone", 0, NAN, NAN, NAN, NAN, None, False, "NaN or infinity, expected finite values")
    broken = replace(HOLDS, stages=(STAGES[1], nothing, replace(STAGES[3], relative_l2=math.inf, holds=False)))
    plot = plot_of(broken)
    assert len(heights(plot)) == 2
    assert "✗ diverges here" in [text for path, text in plot.texts if path[-1] == "text"]
    assert sentence(broken).endswith("in the batch “alone”: NaN or infinity, expected finite values.")
    only = replace(HOLDS, stages=(replace(STAGES[0], holds=False, top1=0.5),))
    assert sentence(only) == (
        "The first stage that diverges is tokenizer, 1 of 1, in the batch “padded”: top-1 agreement is 50.0 %."
    )
    assert len(heights(plot_of(only))) == 0


def test_a_plot_of_low_precision_has_both_errors_and_a_limit_for_each_stage():
    plot = plot_of(LOW)
    classes = [group["class"] for group in plot.attributes("g") if "class" in group]
    assert classes.count("limit zoo") == 4
    assert classes.index("transformers") < classes.index("zoo")
    assert len(heights(plot)) == 8
    assert "limit 1e-05" not in plot.text("svg")


def test_many_stages_are_not_all_named():
    layers = tuple(replace(STAGES[2], name=f"layer.{i}", holds=i != 30) for i in range(40))
    plot = plot_of(replace(HOLDS, stages=layers))
    labels = [text for path, text in plot.texts if path[-1] == "text" and text.startswith("layer")]
    assert len(labels) <= 20
    assert {"layer.0", "layer.30"} <= set(labels)


def test_a_plot_is_the_same_each_time_and_its_ids_are_its_own():
    assert section(1, HOLDS) == section(1, HOLDS)
    first, second = ({tag.get("id") for _, tag in Parsed(section(i, HOLDS).plot).tags} - {None} for i in (1, 2))
    assert first
    assert not first & second


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
    [(0, "0 %"), (1e-9, "< 1 %"), (0.0999, "9 %"), (0.9999, "99 %"), (1, "100 %"), (1.0001, "101 %"), (32, "32 ×")],
)
def test_no_rounding_crosses_the_limit(used, text):
    assert times_of(used) == text


TEXTS = st.lists(st.sampled_from(["a", "b", " ", "  ", "\n", "é", "zoo", ".", "日本", "\x00"])).map("".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_differences_keep_the_texts_and_mark_what_is_not_common(ours, reference):
    left, right = differences(ours, reference)
    assert "".join(piece.text for piece in left) == visible(ours)
    assert "".join(piece.text for piece in right) == visible(reference)
    common = ["".join(piece.text for piece in pieces if not piece.marked) for pieces in (left, right)]
    assert common[0] == common[1]
    assert any(piece.marked for piece in (*left, *right)) == (ours != reference)


def test_differences_are_words():
    left, right = differences("the quick fox", "the quick brown foxes")
    assert [piece.text for piece in left if piece.marked] == ["fox"]
    assert [piece.text for piece in right if piece.marked] == ["brown foxes"]


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_named(name, tmp_path, monkeypatch):
    from parity.page import MissingToolError

    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingToolError, match=r"needs " + name + r".*pip install 'transformers-zoo\[parity\]'"):
        write(tmp_path)


def test_a_real_result_is_shown(tmp_path):
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from parity.page import write_page
    from parity.run import run

    result = run(Case("random:bert-base-NER", "tiny"), exhibits=True)
    text = Parsed(write_page(tmp_path, [result], "").read_text("utf-8")).text()
    assert "1 of 1 hold" in text
    assert result.files[0].sha256 in text
    for stage in result.stages:
        assert stage.name in text
