"""Moonshine: what it writes against transformers, long recordings, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.models.test_whisper import noise
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.models.moonshine import MoonshineConfig
from zoo.tasks.window_transcribe import quiet_windows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("moonshine-tiny", tmp_path_factory.mktemp("moonshine"))


@pytest.mark.parametrize("num_beams", [1, 3])
def test_texts_are_those_of_transformers(num_beams, folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    transcribe = zoo.load(folder)
    theirs = transformers.MoonshineForConditionalGeneration.from_pretrained(folder).eval()
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    recordings = [noise(count, count) for count in (895, 16000, 80001)]
    for recording, found in zip(recordings, transcribe(recordings, num_beams=num_beams), strict=True):
        given = extractor(recording.copy(), sampling_rate=16000, return_tensors="pt")
        most = min(math.ceil(len(recording) / 16000 * 6.5), 39)
        ids = theirs.generate(**given, max_new_tokens=most, num_beams=num_beams, do_sample=False)[0].tolist()
        assert found.text == transcribe.tokenizer.decode(ids).strip()
        assert found.duration == len(recording) / 16000
        assert [(one.start, one.text) for one in found.segments] == [(0.0, found.text)]


def test_long_recordings_are_cut_where_they_are_quiet(folder):
    transcribe, rng = zoo.load(folder), np.random.default_rng(0)
    sound = rng.standard_normal(16000 * 60).astype(np.float32) * 0.1
    sound[16000 * 25 : 16000 * 25 + 4800] = 0
    found = transcribe(sound)
    assert found.segments[0].end == pytest.approx(25.05)  # the first of the quietest tenths of a second, in its middle
    assert found.duration == 60.0
    parts = [transcribe(sound[round(one.start * 16000) : round(one.end * 16000)]) for one in found.segments]
    assert [one.text for one in parts] == [one.text for one in found.segments]
    whole = transcribe([sound, sound[:300], sound[:0]], timestamps=False)
    assert [(one.start, one.end, one.text) for one in whole[0].segments] == [(0.0, 60.0, found.text)]
    assert [one.text for one in whole[1:]] == ["", ""]


def test_windows():
    sound = np.arange(1, 101, dtype=np.float32)
    blocks = (sound[i : i + 7] for i in range(0, 100, 7))
    parts = list(quiet_windows(blocks, 40, 10, 3))
    assert np.array_equal(np.concatenate(parts), sound)
    assert [len(part) for part in parts] == [31, 31, 38]
    assert [len(part) for part in quiet_windows(iter([sound[:40]]), 40, 10, 3)] == [40]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("language", "en"),
        ("translate", True),
        ("prompt", "Moon"),
        ("vad_filter", True),
        ("word_timestamps", True),
        ("timestamps", "word"),
        ("tokens_per_second", 0),
        ("tokens_per_second", "many"),
        ("num_beams", 0),
    ],
)
def test_options_that_are_refused(option, value, folder):
    with pytest.raises(InputError, match=option):
        zoo.load(folder)(noise(900, 0), **{option: value})


def test_masks_are_refused(folder):
    model = zoo.load_model(folder)
    sound, ids = np.zeros((1, 900), np.float32), np.ones((1, 2), int)
    with pytest.raises(InputError, match="attention_mask"):
        model(sound, ids, attention_mask=np.ones((1, 900), int))
    with pytest.raises(UnsupportedError, match="attention_mask"):
        model.encoder(sound, np.ones((1, 900), int))
    with pytest.raises(InputError, match="894 samples, expected at least 895"):
        model(sound[:, :894], ids)


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"encoder_num_attention_heads": 4}, UnsupportedError, "encoder_num_attention_heads = 4"),
        ({"decoder_num_key_value_heads": 2}, UnsupportedError, "decoder_num_key_value_heads = 2"),
        ({"partial_rotary_factor": 1.5}, ConfigError, "partial_rotary_factor = 1.5"),
        ({"partial_rotary_factor": 0.1}, ConfigError, "3 features"),
        ({"rope_parameters": {"rope_type": "spiral"}}, UnsupportedError, "rope_type 'spiral'"),
    ],
)
def test_configs_that_are_refused(fields, error, says):
    with pytest.raises(error, match=says):
        MoonshineConfig.from_dict(fields)
