"""A tokenizer beside an embedding table of another size, and where the warnings of a load point."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import zoo
from zoo.errors import InputError, TokenizerError


def with_lines(folder, count):
    path = folder / "vocab.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = (lines + [f"new{i}" for i in range(count)])[:count]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_vocabulary_cut_short_is_warned_of_at_the_callers_line(tiny):
    folder = with_lines(tiny(), 20_000)
    with pytest.warns(UserWarning, match=r"vocab\.txt: 20000 tokens, but .* has 30522 rows .* cut short") as caught:
        zoo.load(folder)
    assert [w.filename for w in caught] == [__file__]


def test_a_padded_table_is_normal(tiny):
    folder = with_lines(tiny(vocab_size=30_592), 30_522)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zoo.load(folder)


def test_another_checkpoints_vocabulary_is_refused(tiny):
    with pytest.raises(TokenizerError, match=r"vocab\.txt: ids go up to 31999, but .* has 30522 rows .* another"):
        zoo.load(with_lines(tiny(), 32_000))


@pytest.mark.filterwarnings("error")
def test_tokens_added_beyond_the_table_are_named(tiny):
    folder = tiny()
    (folder / "added_tokens.json").write_text(json.dumps({f"<new{i}>": 30522 + i for i in range(7)}))
    with pytest.warns(UserWarning, match=r"'<new0>' \(30522\), .*'<new4>' \(30526\) and 2 more$"):
        embed = zoo.load(folder)
    assert embed("a text without them").shape == (32,)
    with pytest.raises(InputError, match=r"input_ids must be in \[0, 30522\)"):
        embed("a text with <new0>")


@pytest.mark.parametrize("load", [zoo.load, zoo.load_model])
def test_warnings_of_weights_point_to_the_caller(tiny, load):
    folder = tiny()
    model = zoo.load_model(folder)
    words = model.embeddings.word.copy()
    words[0, 0] = np.nan
    model.embeddings.word = words
    zoo.save(model, folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 1}))
    with pytest.warns(UserWarning, match=" has ") as caught:
        load(folder)
    assert sorted(str(w.message).partition(" has ")[2][:9] for w in caught) == ["16 tensor", "NaN or in"]
    assert [w.filename for w in caught] == [__file__] * 2
