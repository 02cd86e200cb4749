"""The characters of a speech model that writes by CTC: vocab.json, as transformers' Wav2Vec2CTCTokenizer reads it.

Shapes: T states of a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InputError, TokenizerError, UnsupportedError, list_names, nearest, quantity
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import check_vocabulary
from .ctc import character_runs
from .special_tokens import ROLES, declared_tokens, text_of, tokenizer_json
from .tidy import tidy_spaces

FILE = "vocab.json"
FILES = (FILE, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
CLASSES = ("Wav2Vec2CTCTokenizer", "Wav2Vec2Tokenizer")
_SPECIAL_TOKEN = re.compile(r"<.+>|\[.+\]")  # "<pad>"
DEFAULT_ROLES = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


class Span(NamedTuple):
    """A part of a text, from its first state to the one after its last."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class CtcVocabulary:
    """The character of each id.

    blank: the id that means none.  delimiter: the character between words, which is written as `space`; None: there is
    none.  lowers: True if texts are written in small letters.  tidies: and without spaces before punctuation.
    """

    file: ClassVar[str] = FILE

    characters: Mapping[int, str]
    blank: int
    unknown: int | None  # the id in the place of one without a character; None: nothing is written for it
    delimiter: str | None
    space: str
    lowers: bool
    tidies: bool
    folder: CheckpointFolder
    files: list[str]  # those of FILES that there are

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> CtcVocabulary:
        """The vocabulary of a checkpoint; TokenizerError or UnsupportedError where it is not one for CTC."""
        files, where = [name for name in FILES if folder.has(name)], folder.where(FILE)
        config = tokenizer_json(folder, "tokenizer_config.json") if "tokenizer_config.json" in files else {}
        kind = config.get("tokenizer_class") or CLASSES[0]
        if kind not in CLASSES:
            raise UnsupportedError(
                f"{folder.where('tokenizer_config.json')}: tokenizer_class {kind!r:.100}, expected {CLASSES[0]!r}"
            )
        vocabulary = _of_language(tokenizer_json(folder, FILE), config.get("target_lang"), where)
        check_vocabulary(vocabulary, where)
        if len(set(vocabulary.values())) != len(vocabulary):
            shared = len(vocabulary) - len(set(vocabulary.values()))
            raise TokenizerError(f"{where}: {quantity(shared, 'token')} with the id of another")
        declared = declared_tokens(folder, files, config, None)
        roles = {role: text_of(token) for role, token in declared.roles.items() if token is not None}
        roles = {**{r: t for r, t in DEFAULT_ROLES.items() if r not in declared.roles}, **roles}
        ids = {text_of(token): i for i, token in declared.added.items()} | vocabulary
        for role in ROLES:  # transformers gives those that are in no file the next ids
            if role in roles and roles[role] not in ids:
                ids[roles[role]] = len(ids)
        if "pad" not in roles or roles["pad"] not in ids:
            raise TokenizerError(f"{where}: there is no pad_token, which is the blank between characters in CTC")
        delimiter = _text(config, "word_delimiter_token", "|", folder)
        space = _text(config, "replace_word_delimiter_char", " ", folder) or ""
        lowers, tidies = (config.get(name) or False for name in ("do_lower_case", "clean_up_tokenization_spaces"))
        if not isinstance(lowers, bool) or not isinstance(tidies, bool):
            where, names = folder.where("tokenizer_config.json"), "do_lower_case and clean_up_tokenization_spaces"
            raise TokenizerError(f"{where}: {names} are {[lowers, tidies]!r:.100}, expected true or false")
        characters = {i: text for text, i in ids.items()}
        blank, unknown = ids[roles["pad"]], ids.get(roles.get("unk", ""))
        return cls(characters, blank, unknown, delimiter, space, lowers, tidies, folder, files)

    def check(self, count: int) -> None:
        """TokenizerError if a model with so many logits never writes the blank."""
        if self.blank >= count:
            raise TokenizerError(
                f"{self.folder.where(self.file)}: the blank, {self.characters[self.blank]!r}, has the id {self.blank}, "
                f"and the model has {count} logits (vocab_size in config.json): one of the two is another checkpoint's"
            )

    def spans(self, ids: np.ndarray) -> list[Span]:
        """The characters of a recording.  ids (T,): of the likeliest one of each state."""
        nothing = self.blank if self.unknown is None else self.unknown
        ids = np.where(np.isin(ids, list(self.characters)), ids, nothing)
        starts, ends = character_runs(ids, self.blank)
        texts = [self.characters[i] for i in ids[starts].tolist()]
        texts = [self.space if text == self.delimiter else text for text in texts]
        return [Span(*one) for one in zip(texts, starts.tolist(), ends.tolist(), strict=True)]

    def hotwords(self, texts: Iterable[str]) -> list[str]:
        """The words of texts as the model writes them: in its case, and without punctuation that it has not."""
        spoken = (text for text in self.characters.values() if not _SPECIAL_TOKEN.fullmatch(text))
        known, out = {one for text in spoken for one in text}, list[str]()
        for word in " ".join(texts).split():
            bare = "".join(one for one in word if one.isalnum() or one in known)
            found = next((w for w in (bare, bare.upper(), bare.lower()) if w and known.issuperset(w)), None)
            if found is None:
                raise InputError(
                    f"hotwords has {word!r:.100}, which {self.folder.where(self.file)} has no characters for"
                )
            out.append(found)
        return out

    def case(self, text: str) -> str:
        """A text in the case that texts are written in."""
        return text.lower() if self.lowers else text

    def text(self, spans: list[Span]) -> str:
        """The text of characters."""
        text = self.case("".join(one.text for one in spans).strip())
        return tidy_spaces(text) if self.tidies else text

    def words(self, spans: list[Span]) -> Iterator[Span]:
        """Yield the words of characters."""
        for is_space, group in groupby(spans, lambda one: one.text == self.space):
            if not is_space:
                word = list(group)
                yield Span("".join(one.text for one in word), word[0].start, word[-1].end)


def _of_language(raw: dict[str, Any], language: Any, where: str) -> dict[str, Any]:
    """The vocabulary of one language, in a file that has several (MMS)."""
    if language is None:
        if raw and all(isinstance(value, dict) for value in raw.values()):
            names = list_names(list(raw), 5)
            raise TokenizerError(
                f"{where}: a vocabulary for each language ({names}), and no target_lang that names one"
            )
        return raw
    if not isinstance(language, str) or not isinstance(raw.get(language), dict):
        guess = nearest(str(language), raw)
        raise TokenizerError(f"{where}: target_lang is {language!r:.100}, which has no vocabulary here{guess}")
    return raw[language]


def _text(config: Mapping[str, Any], name: str, default: str, folder: CheckpointFolder) -> str | None:
    """A field of tokenizer_config.json that is a text, a token's object, or null."""
    value = config.get(name, default)
    if isinstance(value, dict):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        where = folder.where("tokenizer_config.json")
        raise TokenizerError(f"{where}: {name} is {value!r:.100}, expected a text")
    return value
