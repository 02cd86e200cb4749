"""Marian's tokenizers: two SentencePiece models, of the languages that are read and written, and one vocab.json of ids.

The ids of vocab.json have another order than the pieces, of which it may lack some: they are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import check_added, check_charsmap, check_pieces, check_vocabulary
from .sentencepiece_model import (
    BYTE,
    CONTROL,
    MAX_BYTES,
    NORMAL,
    UNIGRAM,
    USER_DEFINED,
    SentencePieceModel,
    read_sentencepiece,
)
from .sentencepiece_normalizer import Segments, SentencePieceNormalizer
from .special_tokens import DeclaredTokens, text_of, tokenizer_json
from .tokenizer_json import tokenizer_of, translate_rust_errors

if TYPE_CHECKING:
    import tokenizers

SOURCE, TARGET, IDS = "source.spm", "target.spm", "vocab.json"
ROLES = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}
MAX_TOKENS = 512
LANGUAGE_MARK = "\U000f0000"  # before the code of a language, ">>fr<<", which counts at the beginning of a text alone


class PieceIds:
    """The ids of a vocab.json for the pieces of a SentencePiece model, which the library numbers in another way."""

    def __init__(self, source: SentencePieceModel, ids: Mapping[str, int], unknown: str, special: Iterable[str]):
        self.ids, self.special = dict(ids), frozenset(special)
        self.names = {index: token for token, index in ids.items()}
        self.size = max(self.names) + 1
        self._pieces = {piece.text: piece.kind for piece in source.pieces}
        self._strips = source.add_dummy_prefix or source.remove_extra_whitespaces
        self.unknown = ids[unknown]
        self._of_library: dict[int, int] = {}  # ids of added tokens -> their own

    def learn_added_tokens(self, backend: tokenizers.Tokenizer) -> None:
        """Learn the library's ids of added tokens."""
        for index, token in backend.get_added_tokens_decoder().items():
            self._of_library[index] = self.ids[token.content.removeprefix(LANGUAGE_MARK)]

    def row(self, row: tokenizers.Encoding) -> tokenizers.Encoding:
        """The library's row with these ids."""
        from tokenizers import Encoding

        if not row.overflowing and all(i < self.size and i != self.unknown for i in row.ids):
            return row
        made = Encoding()
        made.__setstate__(json.dumps(self._renumber(json.loads(row.__getstate__()))).encode())
        return made

    def _renumber(self, state: dict[str, Any]) -> dict[str, Any]:
        # What no piece is for may have an id all the same: those of the other language do.
        both = zip(state["ids"], state["tokens"], strict=True)
        ids = [self._id(i, token) for i, token in both]
        return {**state, "ids": ids, "overflowing": [self._renumber(part) for part in state["overflowing"]]}

    def _id(self, index: int, token: str) -> int:
        if index < self.size:
            return self.ids.get(token, index) if index == self.unknown else index
        return self._of_library.get(index, self.unknown)

    def text(self, ids: Iterable[int], skip_special_tokens: bool) -> str:
        """The text of ids; those past the vocabulary add nothing."""
        out, pieces = "", list[str]()
        for token in filter(None, map(self.names.get, ids)):
            if token not in self.special:
                pieces.append(token)
            elif not skip_special_tokens:
                out += f"{self._text(pieces)}{token} "
                pieces = []
        return (out + self._text(pieces)).replace("▁", " ").strip()

    def _text(self, pieces: list[str]) -> str:
        """The text of pieces, as SentencePiece puts them together."""
        out, at = "", 0
        while at < len(pieces):
            piece, kind = pieces[at], self._pieces.get(pieces[at])
            at += 1
            if kind == BYTE:
                end = next((i for i in range(at, len(pieces)) if self._pieces.get(pieces[i]) != BYTE), len(pieces))
                out += bytes(int(byte[3:5], 16) for byte in pieces[at - 1 : end]).decode(errors="replace")
                at = end
            elif kind is None:
                out += piece
            elif kind != CONTROL:
                out += (piece.removeprefix("▁") if self._strips and not out else piece).replace("▁", " ")
        return out


class Marian(NamedTuple):
    """A direction: its backend, its ids, the tokens of its roles, and what is done to its texts."""

    backend: tokenizers.Tokenizer
    ids: PieceIds
    roles: dict[str, str]
    prepare: Callable[[str], str]


def marian(folder: CheckpointFolder, config: Mapping[str, Any], declared: DeclaredTokens) -> tuple[Marian, Marian]:
    """The tokenizers of the texts that are read, and of those that are written."""
    where, path = folder.where("tokenizer_config.json"), folder.where(IDS)
    for name in ("separate_vocabs", "sp_model_kwargs"):
        if config.get(name):
            raise TokenizerError(f"{where}: {name} = {config[name]!r:.80} is not implemented")
    ids = tokenizer_json(folder, IDS)
    check_vocabulary(ids, path)
    if len(set(ids.values())) != len(ids):
        raise TokenizerError(f"{path}: {len(ids) - len(set(ids.values()))} tokens share an id with another")
    roles = {role: text_of(t) for role in ROLES if (t := declared.roles.get(role, ROLES[role])) is not None}
    unknown = roles.get("unk", ROLES["unk"])
    if unknown not in ids:
        raise TokenizerError(f"{path}: no {unknown!r}, the unknown token, among its {len(ids)}")
    for index, token in sorted(declared.added.items()):
        if ids.setdefault(token.content, index) != index:
            raise TokenizerError(f"{where}: the added token {token.content!r} has the id {index}, and another in {IDS}")
    extra = [text_of(token) for token in (*declared.named.values(), *(declared.extra or ()))]
    for text in (*roles.values(), *extra):
        ids.setdefault(text, max(ids.values()) + 1)
    if len(set(ids.values())) != len(ids):
        raise TokenizerError(f"{where}: added tokens share an id with tokens of {IDS}")
    special = [*roles.values(), *extra, *(token.content for token in declared.added.values() if token.special)]
    stated = {token.content: token for token in declared.added.values()}
    directions = []
    for name in (SOURCE, TARGET):
        source = read_sentencepiece(folder.read(name, MAX_BYTES, TokenizerError), folder.where(name))
        pieces = PieceIds(source, ids, unknown, special)
        backend = _backend(source, pieces, [*dict.fromkeys(special)], stated, folder.where(name))
        _end(backend, roles, ids)
        pieces.learn_added_tokens(backend)
        directions.append(Marian(backend, pieces, roles, MarianTexts(source, pieces)))
    return directions[0], directions[1]


class MarianTexts:
    """A text whose language is marked, so that the code is one token, and normalised: ">>fr<< How are you?"."""

    def __init__(self, source: SentencePieceModel, pieces: PieceIds):
        self.normalizer, self.segments = SentencePieceNormalizer(source), Segments(pieces.special)
        self.pieces = pieces

    def __call__(self, text: str) -> str:
        parts = self.segments.split(text)
        parts[::2] = map(self._read, parts[::2])
        return "".join(parts)

    def _read(self, text: str) -> str:
        if not text.startswith(">>") or (end := text.find("<<")) < 0:
            return self.normalizer(text)
        code = text[: end + 2]
        first = LANGUAGE_MARK + code if code in self.pieces.ids else self.pieces.names[self.pieces.unknown]
        return first + self.normalizer(text[end + 2 :])


def _backend(
    source: SentencePieceModel,
    pieces: PieceIds,
    special: list[str],
    stated: Mapping[str, tokenizers.AddedToken],
    where: str,
) -> tokenizers.Tokenizer:
    """A tokenizer of the library: the pieces at their ids, those without one after them, then the added tokens."""
    from tokenizers import AddedToken

    if source.model_type != UNIGRAM or not source.escape_whitespaces:
        raise TokenizerError(f"{where}: not a unigram model whose spaces are '▁', as Marian's are")
    used = (NORMAL, USER_DEFINED, *([BYTE] if source.byte_fallback else []))
    scores = {piece.text: piece.score for piece in source.pieces if piece.kind in used}
    # A space is in no text that comes here: what begins with one is never found.
    names = [pieces.names.get(index, "") for index in range(pieces.size)]
    vocab = [(name, scores[name]) if name in scores else (f" {i}", 0.0) for i, name in enumerate(names)]
    vocab += [(text, score) for text, score in scores.items() if text not in pieces.ids]
    check_pieces(vocab, where)
    if source.charsmap:
        check_charsmap(source.charsmap, where)
    model = {"type": "Unigram", "vocab": vocab, "unk_id": pieces.unknown, "byte_fallback": source.byte_fallback}
    backend = tokenizer_of({"version": "1.0", "model": model}, where).backend
    languages = [token for token in pieces.ids if token.startswith(">>") and token.endswith("<<")]
    tokens = [stated.get(text) or AddedToken(text, special=True, normalized=False) for text in special]
    tokens += [token for text, token in stated.items() if text not in special]
    tokens += [AddedToken(LANGUAGE_MARK + language, special=False, normalized=False) for language in languages]
    check_added((token.content for token in tokens), where)
    with translate_rust_errors(where):
        backend.add_tokens(tokens)
    return backend


def _end(backend: tokenizers.Tokenizer, roles: Mapping[str, str], ids: Mapping[str, int]) -> None:
    """Put the end after each text, and after a pair."""
    from tokenizers import processors

    end = roles.get("eos")
    tokens, after = ([(end, ids[end])], [end]) if end is not None else ([], [])
    backend.post_processor = processors.TemplateProcessing(
        single=["$A", *after], pair=["$A", "$B", *after], special_tokens=tokens
    )
