"""From tokens to pieces of text: whole characters, nothing lost, cut where a text to stop at begins."""

from __future__ import annotations

import numpy as np
import pytest
from chat_checkpoint import write_chat_tokenizer

from zoo.generate.text import StopStrings, TextStream, text_of
from zoo.hub import find
from zoo.text.tokenizer import Tokenizer


@pytest.fixture(scope="module", params=["bytes", "stories260k"])
def tokenizer(request, tmp_path_factory) -> Tokenizer:
    if request.param == "stories260k":
        return Tokenizer.from_folder(find("stories260k").folder)
    folder = tmp_path_factory.mktemp("tokenizer")
    write_chat_tokenizer(folder)
    return Tokenizer.from_folder(folder)


def pieces(tokenizer: Tokenizer, prompt: list[int], ids: list[int], stops: tuple[str, ...] = ()) -> list[str]:
    stream = TextStream(tokenizer, prompt, stops)
    return [*(stream.add(i) for i in ids), stream.finish()]


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.backend.encode(text).ids


TEXT = "Ünï 你好, 🐈‍⬛ — “the cat” \u200b…\n\n  end. "


def test_every_piece_is_whole_characters(tokenizer):
    prompt, both = ids_of(tokenizer, "The"), ids_of(tokenizer, "The" + TEXT)
    new = both[len(prompt) :]
    assert both[: len(prompt)] == prompt
    found = pieces(tokenizer, prompt, new)
    assert "".join(found) == TEXT
    assert not any("\ufffd" in piece for piece in found)
    assert len([piece for piece in found if piece]) > 10  # as they come, not at the end


def test_pieces_join_to_the_text_of_any_tokens(tokenizer, rng):
    """Special tokens among them, and broken characters where these do not change what stands beside them.

    A run of the byte tokens of stories260k is decoded as one: with a broken byte in it, nothing of it is shown.
    """
    among = np.arange(tokenizer.vocab_size)
    if tokenizer.vocab_size == 512:
        among = np.concatenate([among[:3], among[259:]])
    for _ in range(200):
        ids = rng.choice(among, rng.integers(1, 30)).tolist()
        prompt = ids_of(tokenizer, "Once upon")
        wanted = tokenizer.decode([*prompt, *ids])
        assert wanted == "Once upon" + "".join(pieces(tokenizer, prompt, ids))


def test_the_first_word_after_the_beginning_has_no_space():
    tokenizer = Tokenizer.from_folder(find("stories260k").folder)
    ids = ids_of(tokenizer, "Once upon")
    assert text_of(tokenizer, ids[:1], ids[1:]) == "Once upon"
    assert text_of(tokenizer, ids[:2], ids[2:]) == " upon"


@pytest.mark.parametrize(
    ("stops", "wanted"),
    [
        (("cat",), "Ünï 你好, 🐈‍⬛ — “the "),
        (("”  ", "好"), "Ünï 你"),
        (("好, 🐈",), "Ünï 你"),
        (("the dog", "the cat"), "Ünï 你好, 🐈‍⬛ — “"),
        (("nowhere", "end!"), TEXT),
        (("Ü",), ""),
        ((" ",), "Ünï"),
        (("end. ",), TEXT[:-5]),
        (("end. more",), TEXT),
    ],
    ids=str,
)
def test_texts_to_stop_at(stops, wanted, tokenizer):
    prompt = ids_of(tokenizer, "The")
    new = ids_of(tokenizer, "The" + TEXT)[len(prompt) :]
    found = pieces(tokenizer, prompt, new, stops)
    assert "".join(found) == wanted
    ends = [StopStrings(tokenizer, stops)(new[: i + 1]) for i in range(len(new))]
    assert any(ends) == any(stop in TEXT for stop in stops)
    if any(ends):
        # The row ends with the token that completes it, and nothing certain was kept longer than need be.
        assert text_of(tokenizer, prompt, new[: ends.index(True) + 1], stops) == wanted


def test_nothing_is_shown_that_may_have_to_be_taken_back(tokenizer):
    prompt = ids_of(tokenizer, "The")
    new = ids_of(tokenizer, "The a b c STOPPING at STOPPED now")[len(prompt) :]
    shown = np.cumsum([len(piece) for piece in pieces(tokenizer, prompt, new, ("STOPPED",))])
    assert shown[-1] == len(" a b c STOPPING at ")
