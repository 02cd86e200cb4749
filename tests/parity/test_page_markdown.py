"""The report in Markdown: names and notes are text, and the fingerprint of each checkpoint is with its files."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from made_up import COMMAND, DIVERGES, FAILED, HOLDS

from parity.cases import Case
from parity.report import document, escape, markdown

NAME = "a|b<img src=x>`c`\n# d *e* _f_ [g](h) \\i ~~j~~ &amp; \u202ek"


def written(*results) -> str:
    return markdown(document(results, COMMAND), results)


def test_names_and_notes_are_text():
    stages = (*DIVERGES.stages[:-1], replace(DIVERGES.stages[-1], note=NAME))
    text = written(replace(DIVERGES, case=Case(NAME), architecture=NAME, stages=stages), replace(FAILED, error=NAME))
    assert "<img" not in text
    assert "\u202e" not in text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "## Parity with transformers: 0 of 2 hold, 1 diverges, 1 could not be run",
        f"### {escape(NAME)} (hub): DIVERGES at layer.1",
    ]
    tables = [line for line in lines if line.startswith("|")]
    counts = {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in tables}
    assert counts == {6, 8, 4}  # columns of checkpoints, stages, and files
    assert not [mark for line in tables for mark in re.findall(r"(?<!\\)[`*_\[~]", line)]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a|b<img src=x>", "a\\|b&lt;img src=x&gt;"),
        ("a\r\n\r\n# b", "a \\# b"),
        ("&lt; \\", "&amp;lt; \\\\"),
        ("layer.1 - 2 (tiny)", "layer.1 - 2 (tiny)"),
    ],
)
def test_what_markdown_would_read_is_escaped(text, safe):
    assert escape(text) == safe


def test_a_command_stands_within_its_backticks():
    text = markdown(document([HOLDS], "parity 'a``b' '</details>\n# x'"), [HOLDS])
    assert "\n``` parity 'a``b' '</details> # x' ```\n" in text
    assert f"\n`{COMMAND}`\n" in written(HOLDS)


def test_the_fingerprint_is_with_the_files():
    lines = written(HOLDS, replace(HOLDS, lock=None), replace(HOLDS, files=(), lock_file="a_b")).splitlines()
    at = lines.index("| checkpoint | file | bytes | sha256 |")
    assert lines[at + 2 : at + 7] == [
        f"| random:one (tiny) | model.safetensors | 415,832 | {'0123456789abcdef' * 4} |",
        f"| random:one (tiny) | (fingerprint of all files) |  | sha256:{'cd' * 32} |",
        f"| random:one (tiny) | model.safetensors | 415,832 | {'0123456789abcdef' * 4} |",
        f"| random:one (tiny) | (fingerprint of all files, as demanded by a\\_b) |  | sha256:{'cd' * 32} |",
        "",
    ]
