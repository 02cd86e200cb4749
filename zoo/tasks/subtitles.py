"""Transcriptions as files of subtitles: SubRip (.srt) and WebVTT (https://www.w3.org/TR/webvtt1/)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .transcription import Transcription, Word


def to_srt(result: Transcription) -> str:
    """A cue for each segment."""
    return "\n".join(
        f"{i}\n{_time(one.start, ',')} --> {_time(one.end, ',')}\n{_line(one.text).replace('-->', '->')}\n"
        for i, one in enumerate(result.segments, 1)
    )


def to_vtt(result: Transcription) -> str:
    """A cue for each segment, in which each word but the first stands behind its time, if there are times of words."""
    cues = ["WEBVTT\n"]
    for one, words in zip(result.segments, _words_of_segments(result), strict=True):
        text = "".join(
            f"<{_time(word.start)}>{escape(word.text, quote=False)}" if i else escape(word.text, quote=False)
            for i, word in enumerate(words)
        )
        text = text or escape(one.text, quote=False)
        cues.append(f"{_time(one.start)} --> {_time(one.end)}\n{_line(text)}\n")
    return "\n".join(cues)


def _words_of_segments(result: Transcription) -> Iterator[list[Word]]:
    """The words of each segment; none where the words are not all of the text, as where a character is broken."""
    words = result.words or []
    is_whole = "".join(one.text for one in words) == "".join(one.text for one in result.segments)
    left = iter(words if is_whole else [])
    for one in result.segments:
        found: list[Word] = []
        length = 0
        while is_whole and length < len(one.text) and (more := [*islice(left, 1)]):
            found += more
            length += len(more[0].text)
        yield found


def _time(seconds: float, point: str = ".") -> str:
    """00:01:02.345"""
    minutes, ms = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{ms // 1000:02}{point}{ms % 1000:03}"


def _line(text: str) -> str:
    """The text on one line: an empty line ends a cue."""
    return " ".join(text.split())
