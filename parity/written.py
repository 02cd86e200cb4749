"""What both sides write by themselves, token after token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .choices import compare_ids
from .compare import Rule, Stage


class Written(NamedTuple):
    """What a model writes of each row of a batch: new tokens, up to and with the first that ends a text.

    ends: the tokens that end one.  texts: what the tokens say, where the checkpoint has a tokenizer.
    """

    batch: str
    search: str
    beams: int
    ends: tuple[int, ...]
    ids: list[list[int]]
    texts: list[str]


def compare_written(
    ours: Sequence[Written], wanted: Sequence[Written], rule: Rule, own: Sequence[Written] = ()
) -> list[Stage]:
    """The last stages: of each way to search the ids, and the texts if there are some.

    own: in low precision what the reference itself writes.
    """
    stages = []
    for search in dict.fromkeys(one.search for one in ours):
        mine, its = ([(a, b) for a, b in zip(some, wanted, strict=False) if a.search == search] for some in (ours, own))
        ids = [[(a.batch, a.ids, b.ids) for a, b in pairs] for pairs in (mine, its)]
        stages.append(compare_ids(ids[0], f"written, {search}", rule, ids[1]))
        if any(a.texts for a, _ in mine):
            texts = [[(a.batch, _letters(a.texts), _letters(b.texts)) for a, b in pairs] for pairs in (mine, its)]
            stages.append(compare_ids(texts[0], f"text, {search}", rule, texts[1]))
    return stages


def _letters(texts: Sequence[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]
