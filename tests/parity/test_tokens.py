"""The comparison of tokenizers: it covers what it says, holds where they agree, and names what differs."""

from __future__ import annotations

import unicodedata

import pytest

pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.__main__ import main
from parity.checkpoints import build
from parity.tokens import SCRIPTS, STRINGS, compare_tokenizer, sample_strings
from zoo.text.tokenizer import Tokenizer


def test_the_strings_have_forty_scripts_emoji_marks_and_special_tokens():
    texts = list(sample_strings(["[SEP]"]))
    assert len(texts) == STRINGS
    assert len(SCRIPTS) >= 40
    assert texts == list(sample_strings(["[SEP]"])) != list(sample_strings(["[SEP]"], seed=1))
    joined = "".join(texts)
    assert {"\u200d", "\u0301", "\u3000", "\t", "\x00"} <= set(joined)
    assert "[SEP]" in joined
    for script, blocks in SCRIPTS.items():
        assert any(chr(c) in joined for first, last in blocks for c in range(first, last + 1)), script
    assert {"R", "AL"} <= {unicodedata.bidirectional(c) for c in joined}


@pytest.mark.parametrize("name", ["bert-base-uncased", "roberta-base-squad2", "t5-small", "xlm-roberta-base"])
def test_tokenizers_are_those_of_transformers(tmp_path, name):
    found = compare_tokenizer(build(name, tmp_path))
    assert {"ids", "offsets", "texts of ids", "texts of ids without special tokens"} <= {one.what for one in found}
    assert {one.what: one.differing for one in found} == dict.fromkeys((one.what for one in found), 0)


def test_the_shortest_string_that_differs_is_named(tmp_path, monkeypatch, capsys):
    from_folder = Tokenizer.from_folder
    monkeypatch.setattr(Tokenizer, "from_folder", lambda folder: from_folder(folder).with_lowercase())
    build("roberta-base-squad2", tmp_path)
    assert main([str(tmp_path), "--tokenizer"]) == 1
    said = capsys.readouterr().out
    assert "DIFFERS" in said
    assert "texts of ids: equal" in said
    assert " differ\n" in said
    (line,) = [line for line in said.splitlines() if line.startswith("    '")][:1]
    assert line.strip().strip("'").lower() != line.strip().strip("'")


def test_a_checkpoint_without_a_tokenizer_is_said(tmp_path, capsys):
    build("Llama-3.2-1B", tmp_path)
    assert main([str(tmp_path), "--tokenizer"]) == 2
    assert "no tokenizer" in capsys.readouterr().err


def test_reports_of_stages_are_refused(capsys):
    assert main(["random:bert-base-uncased", "--tokenizer", "--gradients"]) == 2
    assert "leave out --gradients" in capsys.readouterr().err
