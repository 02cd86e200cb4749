"""Transcription: the text of a recording, with the times of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple

from ..peer_names import with_keys
from .notebook import html_table
from .results import Lines, ResultFormat
from .subtitles import to_srt, to_vtt

TIMED_TEXT = {"start": "double", "end": "double", "text": "string"}
PARTS = {"word": "words", "char": "characters"}  # a value of `timestamps` -> the field that it fills


@with_keys()
class Segment(NamedTuple):
    start: float  # seconds
    end: float
    text: str


@with_keys()
class Word(NamedTuple):
    start: float  # seconds
    end: float
    text: str  # a part of its segment's, with the space before it and its punctuation


@with_keys()
class Alternative(NamedTuple):
    text: str
    score: float  # the logarithm of its probability, with what a language model and hotwords add


@with_keys(chunks="segments")
class Transcription(NamedTuple):
    """The text of a recording.  language: its code, None for a checkpoint of one language.  words, characters: None if
    their times were not asked for.  duration: of the recording, in seconds.  alternatives: the best texts, the first of
    which is `text`; None if one was asked for.
    """

    text: str
    language: str | None
    segments: list[Segment]
    words: list[Word] | None = None
    duration: float = 0.0
    characters: list[Word] | None = None
    alternatives: list[Alternative] | None = None

    @property
    def smallest_parts(self) -> Sequence[Segment | Word]:
        """The characters, the words or the segments: the smallest that have times."""
        return next(parts for parts in (self.characters, self.words, self.segments) if parts is not None)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.text)}</p>{html_table(self.smallest_parts)}"


class Transcriptions(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {
        "text": "string",
        "language": "string",
        "segments": [TIMED_TEXT],
        "duration": "double",
    }
    files: ClassVar[dict[str, Callable[[Any], str]]] = {"srt": to_srt, "vtt": to_vtt}

    def further_columns(self, options: Mapping[str, Any]) -> dict[str, Any]:
        asked = {"words": options.get("word_timestamps"), PARTS.get(str(options.get("timestamps"))): True}
        return {name: [TIMED_TEXT] for name in PARTS.values() if asked.get(name)}

    def row(self, result: Transcription, top_k: bool = False) -> dict[str, Any]:
        found = self.json(result)
        names = [name for name in ("segments", "alternatives", *PARTS.values()) if name in found]
        return {**found, **{name: [one._asdict() for one in found[name]] for name in names}}

    def json(self, result: Transcription) -> dict[str, Any]:
        found = result._asdict()
        optional = ("alternatives", *PARTS.values())
        return {name: value for name, value in found.items() if name not in optional or value is not None}

    def lines(self, result: Transcription) -> Lines:
        return [(f"{one.start:.2f}-{one.end:.2f}", one.text.strip()) for one in result.smallest_parts]
