"""The pieces of words of a speech model that writes by CTC: tokenizer.json, as ParakeetTokenizer reads it.

Shapes: T states of a recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..errors import TokenizerError, UnsupportedError
from ..files.folder import CheckpointFolder
from .ctc_vocabulary import CtcVocabulary, Span
from .tokenizer_files import FILE, load_files

WORD_BEGIN = "▁"  # what a piece has in the place of the space before it
DECODER = "Metaspace"


@dataclass(frozen=True)
class CtcPieces(CtcVocabulary):
    """The piece of each id, with the space before it.  Special tokens are never written."""

    file: ClassVar[str] = FILE

    @classmethod
    def from_folder(cls, folder: CheckpointFolder) -> CtcPieces:
        """The pieces of a checkpoint; TokenizerError or UnsupportedError where they are not ones for CTC."""
        loaded, where = load_files(folder), folder.where(FILE)
        if (kind := type(loaded.backend.decoder).__name__) != DECODER:
            raise UnsupportedError(f"{where}: the decoder {kind!r} is not implemented for CTC, only {DECODER!r} is")
        blank = loaded.backend.token_to_id(loaded.roles["pad"]) if "pad" in loaded.roles else None
        if blank is None:
            raise TokenizerError(f"{where}: there is no pad_token, which is the blank between pieces in CTC")
        special = {i for i, token in loaded.backend.get_added_tokens_decoder().items() if token.special}
        vocabulary = loaded.backend.get_vocab(with_added_tokens=True)
        pieces = {i: text.replace(WORD_BEGIN, " ") for text, i in vocabulary.items() if i not in special or i == blank}
        return cls(pieces, blank, None, None, " ", False, loaded.tidies, folder, loaded.files)

    def words(self, spans: list[Span]) -> Iterator[Span]:
        """Yield the words of pieces."""
        text, start, end = "", 0, 0
        for piece in spans:
            if piece.text.startswith(" "):
                if text:
                    yield Span(text, start, end)
                text = ""
            start, end = start if text else piece.start, piece.end
            text += piece.text.strip()
        if text:
            yield Span(text, start, end)
