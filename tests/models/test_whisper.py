"""Whisper: its spectrograms and the order of times against transformers; sounds of any length; what is refused."""

from __future__ import annotations

import io
import json
import wave

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import BatchError, ConfigError, InputError
from zoo.sounds import FeatureExtractor, read_sound
from zoo.tasks.transcribe import segments_of, with_times


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("whisper-base", tmp_path_factory.mktemp("whisper"))


def noise(count, seed=0):
    t = np.arange(count) / 16000
    sound = 0.3 * np.sin(2 * np.pi * 440 * t * (1 + t)) + np.random.default_rng(seed).normal(0, 0.05, count)
    return sound.astype(np.float32)


def as_wav(samples, rate):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1), out.setsampwidth(2), out.setframerate(rate)
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


@pytest.mark.parametrize(("bins", "count"), [(80, 16000 * 3), (128, 16000 * 30)])
def test_spectrograms_are_those_of_transformers(bins, count):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    sound = noise(count)
    wanted = transformers.WhisperFeatureExtractor(feature_size=bins)(sound, sampling_rate=16000, return_tensors="np")
    found = FeatureExtractor(feature_size=bins)(sound)
    assert found.shape == (bins, 3000)
    assert np.abs(found - wanted["input_features"][0]).max() < 2e-4  # whose transform is in float32


def test_the_order_of_times_is_that_of_transformers():
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    process = pytest.importorskip("transformers.generation.logits_process", reason="needs transformers, the reference")
    from types import SimpleNamespace

    config = SimpleNamespace(no_timestamps_token_id=29, eos_token_id=20, bos_token_id=20, max_initial_timestamp_index=4)
    theirs = process.WhisperTimeStampLogitsProcessor(config, begin_index=2)
    rng = np.random.default_rng(0)
    for tokens in ([], [31], [31, 5], [31, 5, 36], [31, 5, 36, 36], [31, 5, 36, 36, 7], [30, 3, 4, 40, 41, 5, 6]):
        for size in (1, 5):
            logits = rng.normal(0, size, 50).astype(np.float32)
            wanted = theirs(torch.tensor([[1, 2, *tokens]]), torch.tensor(logits[None]))[0].numpy()
            np.testing.assert_array_equal(with_times(logits, tokens, 30, 20, 4), wanted)


@pytest.mark.parametrize(
    ("tokens", "segments", "seconds"),
    [
        ([100, 5, 6, 150], [(0, 1, [5, 6])], 30),  # one that ends: all of the window is read
        ([100, 5, 110, 110, 6, 120, 120, 7], [(0, 0.2, [5]), (0.2, 0.4, [6])], 0.4),  # the last is not whole
        ([100, 5, 110, 115, 6, 120], [(0, 0.2, [5]), (0.3, 0.4, [6])], 30),
        ([100, 5, 6], [(0, 30, [5, 6])], 30),
        ([100, 100], [(0, 0, [])], 30),  # no step of no length
        ([], [(0, 30, [])], 30),
    ],
)
def test_segments(tokens, segments, seconds):
    found, step = segments_of(tokens, 100, 30.0)
    assert [ids for *_, ids in found] == [ids for *_, ids in segments]
    np.testing.assert_allclose([one[:2] for one in found], [one[:2] for one in segments])
    assert step == pytest.approx(seconds)


def test_a_window_is_what_the_model_finds_likeliest(folder):
    transcribe = zoo.load(folder)
    features = transcribe.features(noise(9000))
    language, tokens = transcribe._written(features, "de", "translate")
    ids, model = [3, 5, 7], transcribe.model
    for token in tokens:
        logits = model(features[None], np.array([ids])).logits[0, -1]
        assert token == transcribe._allowed(logits, ids[3:]).argmax()
        ids.append(token)
    assert language == "de"
    first = model(features[None], np.array([[3]])).logits[0, -1]
    heard, _ = transcribe._written(features, None, "transcribe")
    assert heard == ("en" if first[4] >= first[5] else "de")


def test_long_sounds_and_files(folder, tmp_path):
    transcribe = zoo.load(folder)
    sound = noise(16000 * 3 + 500)
    found = transcribe(sound)
    assert found.language in ("en", "de")
    assert all(0 <= one.start <= one.end <= 4.1 for one in found.segments)
    assert [one.start for one in found.segments] == sorted(one.start for one in found.segments)
    assert transcribe([sound, sound[:0]]) == [found, type(found)("", None, [])]
    zoo.save(transcribe, tmp_path / "saved")
    assert zoo.load(tmp_path / "saved")(sound) == found
    pytest.importorskip("av", reason="needs av, which reads sound files")
    (tmp_path / "a.wav").write_bytes(as_wav(sound, 16000))
    read = np.concatenate(list(read_sound(tmp_path / "a.wav", 16000)))
    assert np.abs(read - sound).max() < 1e-4
    assert transcribe(tmp_path / "a.wav") == transcribe(read) == transcribe(as_wav(sound, 16000))
    halved = np.concatenate(list(read_sound(as_wav(sound, 16000), 8000)))
    assert abs(len(halved) - len(sound) // 2) < 20


def test_refused(folder, tmp_path):
    transcribe = zoo.load(folder)
    for options, says in (
        ({"language": "fr"}, "language is 'fr', expected one of en, de"),
        ({"task": "sing"}, "task is 'sing', expected transcribe or translate"),
    ):
        with pytest.raises(InputError, match=says):
            transcribe(noise(500), **options)
    with pytest.raises(InputError, match=r"expected finite floats \(samples,\)"):
        transcribe(np.zeros((2, 500)))
    with pytest.raises(InputError, match=r"5 mel bins, and the checkpoint reads 20"):
        transcribe.model(np.zeros((1, 5, 50), np.float32), [[3]])
    raw = json.loads((folder / "preprocessor_config.json").read_text())
    with pytest.raises(ConfigError, match="makes 20 bins x 100 frames, and the model reads 20 x 50"):
        type(transcribe)(
            transcribe.model, FeatureExtractor(20, chunk_length=1), transcribe.tokenizer, transcribe.generation
        )
    assert raw["hop_length"] == 320
    pytest.importorskip("av", reason="needs av, which reads sound files")
    (tmp_path / "none.wav").write_bytes(b"no sound at all")
    with pytest.raises(InputError, match=r"none\.wav cannot be read as a sound"):
        transcribe(tmp_path / "none.wav")
    draw(20, 30).save(tmp_path / "cat.png")
    with pytest.raises(InputError, match=r"cat\.png cannot be read as a sound"):
        transcribe(tmp_path / "cat.png")
    (tmp_path / "a.wav").write_bytes(as_wav(noise(500), 16000))
    (tmp_path / "list.wav").write_text("ffconcat version 1.0\nfile a.wav\n")  # names another file to open
    with pytest.raises(InputError, match=r"list\.wav cannot be read as a sound"):
        transcribe(tmp_path / "list.wav")
    with pytest.raises(InputError, match="there is no such file"):
        transcribe(str(tmp_path / "other.wav"))
    with pytest.raises(BatchError):
        transcribe([noise(500), b"no sound"])
