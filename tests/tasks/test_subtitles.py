"""Transcriptions as SubRip and WebVTT."""

from __future__ import annotations

from zoo.tasks.subtitles import to_srt, to_vtt
from zoo.tasks.transcription import Segment, Transcription, Word

SEGMENTS = [Segment(0.0, 3.2, " A <b> & c"), Segment(3661.5, 3662.0, " x --> y\n\nz")]
WORDS = [
    Word(0.0, 0.5, " A"),
    Word(0.5, 1.25, " <b>"),
    Word(1.25, 2.0, " &"),
    Word(2.0, 3.0, " c"),
    Word(3661.5, 3661.7, " x"),
    Word(3661.7, 3661.8, " -->"),
    Word(3661.8, 3661.9, " y\n\nz"),
]


def test_srt():
    wanted = "1\n00:00:00,000 --> 00:00:03,200\nA <b> & c\n\n2\n01:01:01,500 --> 01:01:02,000\nx -> y z\n"
    assert to_srt(Transcription("", "en", SEGMENTS)) == to_srt(Transcription("", "en", SEGMENTS, WORDS)) == wanted
    assert to_srt(Transcription("", None, [])) == ""


def test_vtt():
    plain = to_vtt(Transcription("", "en", SEGMENTS))
    assert plain == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:03.200\nA &lt;b&gt; &amp; c\n\n01:01:01.500 --> 01:01:02.000\nx --&gt; y z\n"
    )
    timed = to_vtt(Transcription("", "en", SEGMENTS, WORDS)).splitlines()
    assert timed[3] == "A<00:00:00.500> &lt;b&gt;<00:00:01.250> &amp;<00:00:02.000> c"
    assert timed[6] == "x<01:01:01.700> --&gt;<01:01:01.800> y z"
    assert to_vtt(Transcription("", "en", SEGMENTS, WORDS[1:])) == plain  # words that are not the text
    assert to_vtt(Transcription("", None, [])) == "WEBVTT\n"


def test_times_are_rounded_once():
    assert to_srt(Transcription("", None, [Segment(59.9996, 3599.9999, " a")])) == (
        "1\n00:01:00,000 --> 01:00:00,000\na\n"
    )
