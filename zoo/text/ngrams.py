"""NgramModel: how likely a word is after others, by a file of n-grams that kenlm reads (extra `ngrams`).

What a search weighs with it is what pyctcdecode weighs, which transformers' Wav2Vec2ProcessorWithLM decodes with.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, InputError, NotFoundError, nearest, quantity
from ..files.folder import CheckpointFolder
from ..optional import import_optional

FOLDER = "language_model"  # where a checkpoint has its own
ATTRIBUTES, UNIGRAMS = "attrs.json", "unigrams.txt"
ENDS = (".arpa", ".bin", ".binary")
MAX_UNIGRAMS_BYTES = 1 << 28
PLAIN_LENGTH = 6  # characters: an unknown word that is longer costs more
LOG_10 = math.log(10.0)  # kenlm's logarithms have the base 10


@dataclass(frozen=True)
class NgramModel:
    """A model of n-grams, and the weights of its scores.

    model: kenlm's, or another with its methods.  alpha: the weight of a word's log-probability.  beta: what each word
    adds, so that many short words are not unlikely by themselves.  unk_score_offset: what an unknown word adds before
    the weight.  score_boundary: True if the text is known to begin and to end.  unigrams: the words that are known, in
    order; without them those of the model are, and the beginning of any word may be one of an unknown word.
    """

    model: Any
    new_state: Callable[[], Any]
    unigrams: list[str] = field(default_factory=list)
    alpha: float = 0.5
    beta: float = 1.5
    unk_score_offset: float = -10.0
    score_boundary: bool = True

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "unk_score_offset"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{name} of a language model is {value!r:.100}, expected a number")
        if not isinstance(self.score_boundary, bool):
            raise InputError(f"score_boundary of a language model is {self.score_boundary!r:.100}, expected a bool")

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], **weights: Any) -> NgramModel:
        """The model in a file (.arpa, .bin) or in a folder as pyctcdecode writes it; weights: fields, such as alpha.

        kenlm maps a .bin file into memory as it lies: take one from whom you would take a program.
        """
        path = Path(path).expanduser()
        if path.is_dir():
            return cls.from_folder(CheckpointFolder(path), **weights)
        if not path.is_file():
            raise NotFoundError(f"language_model: there is no file or folder {str(path)!r}")
        if path.suffix not in ENDS:
            raise InputError(f"language_model is {str(path)!r}, expected a file that ends in {', '.join(ENDS)}")
        return cls._read(path, [], weights)

    @classmethod
    def from_folder(cls, folder: CheckpointFolder, **weights: Any) -> NgramModel:
        """The model in a folder: attrs.json, unigrams.txt, and a file for kenlm."""
        where, names = str(folder), folder.names()
        found = [name for name in names if name.endswith(ENDS)]
        if len(found) != 1:
            raise NotFoundError(
                f"{where} has {quantity(len(found), 'file')} that {'end' if len(found) != 1 else 'ends'} in "
                f"{', '.join(ENDS)}, expected one language model; it has {', '.join(names[:5]) or 'no files'}"
            )
        stored = folder.json(ATTRIBUTES) if ATTRIBUTES in names else {}
        known = ("alpha", "beta", "unk_score_offset", "score_boundary")
        for name in stored:
            if name not in known:
                place = folder.where(ATTRIBUTES)
                raise CheckpointError(
                    f"{place}: {name!r:.100} is not a field of a language model{nearest(name, known)}"
                )
        unigrams = []
        if UNIGRAMS in names:
            content = folder.read(UNIGRAMS, MAX_UNIGRAMS_BYTES, CheckpointError)
            try:
                unigrams = content.decode().splitlines()
            except UnicodeDecodeError as e:
                raise CheckpointError(f"{folder.where(UNIGRAMS)} is not UTF-8 ({e})") from None
        return cls._read(folder.at(found[0]), unigrams, {**stored, **weights})

    @classmethod
    def _read(cls, path: Path, unigrams: Iterable[str], weights: dict[str, Any]) -> NgramModel:
        kenlm = import_optional("kenlm", "a language model for CTC", "ngrams")
        try:
            model = kenlm.Model(str(path))
        except (OSError, RuntimeError) as e:
            reason = " ".join(str(e).split())
            raise CheckpointError(f"{path} is not a language model that kenlm reads: {reason:.300}") from None
        return cls(model, kenlm.State, sorted({word for word in unigrams if word in model}), **weights)

    def start(self) -> Any:
        """The state before the first word."""
        state = self.new_state()
        (self.model.BeginSentenceWrite if self.score_boundary else self.model.NullContextWrite)(state)
        return state

    def score(self, state: Any, word: str) -> tuple[float, Any]:
        """What a word adds to the score of the words before it, whose state is given; and the state after it."""
        after = self.new_state()
        found = self.model.BaseScore(state, word, after)
        if word not in self.model or (self.unigrams and not self._begins(word, whole=True)):
            found += self.unk_score_offset
        return self.alpha * found * LOG_10 + self.beta, after

    def score_end(self, state: Any) -> float:
        """What the end adds to the score of a text."""
        if not self.score_boundary:
            return 0.0
        return self.alpha * self.model.BaseScore(state, "</s>", self.new_state()) * LOG_10

    def score_part(self, part: str) -> float:
        """What the beginning of a word adds to the score, until the word is whole."""
        if self._begins(part, whole=False):
            return 0.0
        return self.unk_score_offset * max(1.0, len(part) / PLAIN_LENGTH)

    def _begins(self, part: str, *, whole: bool) -> bool:
        """True if a known word begins so, or is this one."""
        i = bisect_left(self.unigrams, part)
        if i == len(self.unigrams):
            return False
        return self.unigrams[i] == part if whole else self.unigrams[i].startswith(part)
