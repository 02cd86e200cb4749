"""Whisper: its spectrograms and the order of times against transformers; recordings of any length; what is refused."""

from __future__ import annotations

import io
import json
import wave
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from parity.vocabularies import write_json
from zoo.audio import FeatureExtractor, Spectrogram, read_audio
from zoo.audio.languages import LANGUAGE_CODES
from zoo.errors import BatchError, ConfigError, InputError
from zoo.files.folder import CheckpointFolder
from zoo.generate.speech import Fallback, segments_of, with_times


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("whisper-base", tmp_path_factory.mktemp("whisper"))


def noise(count, seed=0):
    t = np.arange(count) / 16000
    recording = 0.3 * np.sin(2 * np.pi * 440 * t * (1 + t)) + np.random.default_rng(seed).normal(0, 0.05, count)
    return recording.astype(np.float32)


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
    recording = noise(count)
    wanted = transformers.WhisperFeatureExtractor(feature_size=bins)(
        recording, sampling_rate=16000, return_tensors="np"
    )
    found = FeatureExtractor(feature_size=bins)(recording)
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
        ([125, 5, 6], [(0, 0.5, [5, 6])], 30),
        ([100, 100], [(0, 0, [])], 30),  # no step of no length
        ([], [(0, 30, [])], 30),
    ],
)
def test_segments(tokens, segments, seconds):
    found, step = segments_of(tokens, 100, 30.0)
    assert [[tokens[i] for i in places] for *_, places in found] == [ids for *_, ids in segments]
    np.testing.assert_allclose([one[:2] for one in found], [one[:2] for one in segments])
    assert step == pytest.approx(seconds)


@pytest.fixture(scope="module")
def theirs(folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)

    def transcribed(recording, **options):
        long = {"truncation": False, "padding": "longest"} if len(recording) > extractor.n_samples else {}
        x = extractor(recording, sampling_rate=16000, return_tensors="pt", **long).input_features
        found = model.generate(x, return_timestamps=True, return_segments=True, **options)["segments"][0]
        return [(float(one["start"]), float(one["end"]), one["tokens"].tolist()) for one in found]

    return transcribed


@pytest.mark.parametrize(("language", "task"), [(None, "transcribe"), ("de", "translate")])
def test_texts_and_times_are_those_of_transformers(folder, theirs, language, task):
    transcribe = zoo.load(folder)
    recordings = [noise(int(16000 * seconds), seed) for seed, seconds in enumerate((0.4, 1.0, 2.3))]
    every = transcribe(recordings, language=language, task=task, temperature=0, batch_size=2)
    for recording, found in zip(recordings, every, strict=True):
        wanted = [(*one[:2], transcribe._text(one[2])) for one in theirs(recording, language=language, task=task)]
        wanted = [one for one in wanted if one[2].strip()]
        if len(recording) < 16000:  # transformers reads the silence that fills the window, too
            wanted = wanted[: len(found.segments)]
        assert found.segments == wanted
        assert wanted
        assert transcribe(recording, language=language, task=task, temperature=0) == found


@pytest.mark.parametrize("options", [{"num_beams": 3}, {"num_beams": 2, "prompt": "a zebra"}, {"prompt": "a zebra"}])
def test_beams_and_prompts_are_those_of_transformers(folder, theirs, options):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transcribe = zoo.load(folder)
    before = {"prompt_ids": torch.tensor(transcribe._encode_prompt(options["prompt"]))} if "prompt" in options else {}
    beams = {"num_beams": options["num_beams"]} if "num_beams" in options else {}
    plain, found = [], []
    for recording in (noise(16000, 1), noise(40000, 2), noise(16000, 3)):
        wanted = [
            (*one[:2], transcribe._text(one[2])) for one in theirs(recording, task="transcribe", **beams, **before)
        ]
        found.append(transcribe(recording, temperature=0, **options).segments)
        assert found[-1] == [one for one in wanted if one[2].strip()]
        plain.append(transcribe(recording, temperature=0).segments)
    assert found != plain


def test_a_prompt(folder):
    transcribe, recording = zoo.load(folder), noise(16000, 1)
    greedy = {"language": "en", "temperature": 0}
    plain, long = transcribe(recording, **greedy), "zebra " * 60
    assert transcribe(recording, prompt=" ", **greedy) == plain != transcribe(recording, prompt="zebra", **greedy)
    ids = transcribe._encode_prompt("zebra")
    assert ids[0] == transcribe.generation.extra["prev_sot_token_id"]
    assert transcribe.tokenizer.decode(ids[1:]) == " zebra"
    with pytest.warns(UserWarning, match=r"the prompt has \d+ tokens, of which the model takes the last 19"):
        assert len(transcribe._encode_prompt(long)) == 1 + 19
    assert transcribe(recording, initial_prompt="zebra", beam_size=2, **greedy) == transcribe(
        recording, prompt="zebra", num_beams=2, **greedy
    )
    words = transcribe(recording, prompt="zebra", num_beams=2, word_timestamps=True, **greedy)
    assert "".join(one.text for one in words.words) == "".join(one.text for one in words.segments)


def test_texts_without_times_are_those_of_transformers(folder):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    transcribe, recording = zoo.load(folder), noise(16000, 3)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    x = extractor(recording, sampling_rate=16000, return_tensors="pt").input_features
    ids = model.generate(x, language="de", task="transcribe")[0].tolist()
    found = transcribe(recording, language="de", timestamps=False, temperature=0)
    assert found.text == transcribe._text(ids).strip()
    assert [one[:2] for one in found.segments] == [(0.0, 1.0)]
    twice = transcribe(np.concatenate([recording, recording]), language="de", timestamps=False, temperature=0)
    assert [one.start for one in twice.segments] == [0.0, 1.0]


def test_unlikely_texts_are_silence_where_transformers_hears_it(folder, theirs, monkeypatch):
    transcribe, recording, seen = zoo.load(folder), noise(16000), []
    monkeypatch.setattr(Fallback, "is_silence", lambda self, *odds: bool(seen.append(odds)))
    assert transcribe(recording, temperature=0).text
    monkeypatch.undo()
    odds, logprob = np.exp(seen[0][0]), seen[0][1]
    for loud, likely in ((0.9, 0.02), (1.1, 0.02), (0.9, -0.02)):
        limits = {"no_speech_threshold": odds * loud, "logprob_threshold": logprob + likely}
        wanted = theirs(recording, task="transcribe", temperature=0.0, compression_ratio_threshold=None, **limits)
        assert bool(transcribe(recording, temperature=0, **limits).text) is bool(wanted) is (loud > 1 or likely < 0)


def test_a_text_that_fails_is_written_again(folder, monkeypatch):
    transcribe, recording = zoo.load(folder), noise(16000)
    assert not Fallback().fails("", 0.0)
    assert Fallback().fails("again and again " * 9, 0.0)
    assert not Fallback(compression_ratio_threshold=None).fails("again and again " * 9, 0.0)
    assert Fallback().fails("once", -1.1)
    first, hot = transcribe(recording, temperature=0), transcribe(recording, temperature=1)
    assert first != hot == transcribe(recording, temperature=1.0)
    assert transcribe(recording, temperature=(0, 1), logprob_threshold=None, compression_ratio_threshold=None) == first
    tried = []
    fails = lambda self, text, logprob: tried.append(text) or len(tried) < 3
    monkeypatch.setattr(Fallback, "fails", fails)
    found = transcribe([recording, recording[:900]], no_speech_threshold=None, batch_size=1)
    assert len(set(tried)) == len(tried) > 3
    assert tried[2].startswith(found[0].segments[0].text)


def test_a_long_recording_is_read_twice_and_seen_as_transformers_sees_it(folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    reads, recording = [], noise(16000 * 24 + 77) * np.linspace(0, 1, 16000 * 24 + 77, dtype=np.float32)

    def read():
        reads.append(1)
        return iter(np.array_split(recording, 1000))

    extractor = FeatureExtractor.from_folder(CheckpointFolder.of(folder))
    theirs = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    wanted = theirs(recording, sampling_rate=16000, return_tensors="np", truncation=False, padding="longest")
    wanted = wanted["input_features"][0]
    found = Spectrogram(extractor, read)
    assert len(reads) == 2
    assert found.length == wanted.shape[1] + 1  # of whose last transformers has no state
    for at in (0, 3, 100, 1234, 2350):
        seen = wanted[:, at : at + 100]
        assert np.abs(found.window(at)[:, : seen.shape[1]] - seen).max() < 2e-4
    assert not found.window(2399)[:, 2:].any()


def test_long_recordings_and_files(folder, tmp_path):
    loaded = zoo.load(folder)
    transcribe = partial(loaded, temperature=0)
    recording = noise(16000 * 3 + 500)
    found = transcribe(recording)
    assert found.language in ("en", "de")
    assert all(0 <= one.start <= one.end <= 4.1 for one in found.segments)
    assert [one.start for one in found.segments] == sorted(one.start for one in found.segments)
    assert transcribe([recording, recording[:0]]) == [found, type(found)("", None, [])]
    zoo.save(loaded, tmp_path / "saved")
    assert zoo.load(tmp_path / "saved")(recording, temperature=0) == found
    pytest.importorskip("av", reason="needs av, which reads audio files")
    (tmp_path / "a.wav").write_bytes(as_wav(recording, 16000))
    read = np.concatenate(list(read_audio(tmp_path / "a.wav", 16000)))
    assert np.abs(read - recording).max() < 1e-4
    assert transcribe(tmp_path / "a.wav") == transcribe(read) == transcribe(as_wav(recording, 16000))
    assert transcribe(io.BytesIO(as_wav(recording, 16000))) == transcribe(read)
    halved = np.concatenate(list(read_audio(as_wav(recording, 16000), 8000)))
    assert abs(len(halved) - len(recording) // 2) < 20


def test_refused(folder, tmp_path):
    transcribe = zoo.load(folder)
    for options, says in (
        ({"language": "fr"}, "language is 'fr', expected its English name or one of en, de"),
        ({"task": "sing"}, "task is 'sing', expected one of transcribe, translate"),
        ({"temperature": "hot"}, "temperature is 'hot', expected numbers from 0 to 100"),
        ({"temperature": []}, r"temperature is \[\], expected numbers"),
        ({"logprob_threshold": "low"}, "logprob_threshold is 'low', expected a number or None"),
        ({"timestamps": "char"}, "timestamps is 'char', expected True, False or 'word'"),
        ({"word_timestamps": 1}, "word_timestamps is 1, expected True or False"),
        ({"batch_size": 0}, "batch_size is 0, expected a whole number of at least 1"),
        ({"num_beams": 0}, "num_beams is 0, expected a whole number from 1 to 100"),
        ({"prompt": 5}, "prompt is 5, expected a text"),
        ({"prompt": "to <mask>"}, "prompt has the special token <mask>, expected words"),
        ({"top_k": 2}, "top_k is not an option of transcribing, expected temperature, compression"),
    ):
        with pytest.raises(InputError, match=says):
            transcribe(noise(500), **options)
    with pytest.raises(InputError, match=r"expected finite floats \(samples,\)"):
        transcribe(np.zeros((2, 500)))
    for recording in (np.float32(1), 5, None):
        with pytest.raises(InputError, match="expected a path, bytes, an open file or an array of floats"):
            transcribe(recording)
    with pytest.raises(InputError, match=r"5 mel bins, and the checkpoint reads 20"):
        transcribe.model(np.zeros((1, 5, 100), np.float32), [[3]])
    with pytest.raises(ConfigError, match="makes 20 bins x 200 frames, and the model reads 20 x 100"):
        type(transcribe)(
            transcribe.model, FeatureExtractor(20, chunk_length=2), transcribe.tokenizer, transcribe.generation
        )
    for wrong in (
        {"no_timestamps_token_id": -1},
        {"lang_to_id": {"<|en|>": 10**9}},
        {"task_to_id": {"translate": "x"}},
    ):
        generation = replace(transcribe.generation, extra={**transcribe.generation.extra, **wrong})
        with pytest.raises(ConfigError, match=r"expected the id of a token, 0 \.\.\. \d+"):
            type(transcribe)(transcribe.model, transcribe.features, transcribe.tokenizer, generation)
    raw = json.loads((folder / "preprocessor_config.json").read_text())
    write_json(tmp_path / "preprocessor_config.json", {**raw, "hop_length": 500})
    with pytest.raises(
        ConfigError, match="hop_length = 500, n_fft = 400, and a window of 16000 samples: expected each"
    ):
        FeatureExtractor.from_folder(CheckpointFolder.of(tmp_path))
    for fields in (  # whose windows would take 12 GB and more by their numbers
        {"chunk_length": 30, "hop_length": 160, "n_fft": 480_000},
        {"chunk_length": 3000, "sampling_rate": 1 << 20, "hop_length": 1 << 20, "n_fft": 1 << 20},
        {"chunk_length": 30, "hop_length": 160, "feature_size": 1 << 20},
    ):
        write_json(tmp_path / "preprocessor_config.json", {**raw, **fields})
        with pytest.raises(ConfigError, match=r"take \d+ numbers, expected at most 8388608"):
            FeatureExtractor.from_folder(CheckpointFolder.of(tmp_path))
    pytest.importorskip("av", reason="needs av, which reads audio files")
    (tmp_path / "none.wav").write_bytes(b"no audio at all")
    with pytest.raises(InputError, match=r"none\.wav cannot be read as audio"):
        transcribe(tmp_path / "none.wav")
    draw(20, 30).save(tmp_path / "cat.png")
    with pytest.raises(InputError, match=r"cat\.png cannot be read as audio"):
        transcribe(tmp_path / "cat.png")
    (tmp_path / "a.wav").write_bytes(as_wav(noise(500), 16000))
    (tmp_path / "list.wav").write_text("ffconcat version 1.0\nfile a.wav\n")  # names another file to open
    with pytest.raises(InputError, match=r"list\.wav cannot be read as audio"):
        transcribe(tmp_path / "list.wav")
    with pytest.raises(InputError, match="there is no such file"):
        transcribe(str(tmp_path / "other.wav"))
    with pytest.raises(BatchError):
        transcribe([noise(500), b"no audio"])


@pytest.mark.parametrize("spec", ["whisper-classifier", "whisper-medium-fleurs-lang-id"])
def test_labels_of_recordings_are_those_of_the_pipeline(spec, tmp_path):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build(spec, tmp_path)
    classify = zoo.load(folder)
    theirs = transformers.pipeline("audio-classification", model=str(folder), device="cpu")
    recordings = [noise(count, seed) for seed, count in enumerate((12000, 16000, 5000))]
    found = classify(recordings, top_k=3, batch_size=2)
    for ours, recording in zip(found, recordings, strict=True):
        wanted = theirs(recording.copy(), top_k=3)
        assert [label for label, _ in ours] == [one["label"] for one in wanted]
        np.testing.assert_allclose([score for _, score in ours], [one["score"] for one in wanted], rtol=1e-3)
    alone = classify(recordings[0], top_k=None)
    assert (alone[0].label, len(alone)) == (found[0][0].label, classify.config.num_labels)
    with pytest.warns(UserWarning, match="1 of 1 recordings are longer than 1 s, and were cut there"):
        assert classify(noise(40000), top_k=1) == [classify(noise(40000)[:16000], top_k=1)[0]]
    with pytest.raises(InputError, match="audio"):
        classify([recordings[0], np.zeros((2, 2), np.float32)])
    copy = classify.save(tmp_path / "copy")
    assert zoo.load(copy)(recordings[0]) == classify(recordings[0])


def test_the_decoder_out_of_a_file_of_both_sides(folder, tmp_path):
    """distil-whisper is loaded so to propose tokens; it is saved as a decoder alone."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    theirs = transformers.WhisperForCausalLM.from_pretrained(folder).eval()
    ids, states = np.array([[439, 7, 8, 9]]), np.random.default_rng(0).normal(size=(1, 50, 48)).astype(np.float32)
    with torch.no_grad():
        wanted = theirs(input_ids=torch.tensor(ids), encoder_outputs=torch.tensor(states)).logits
    ours = zoo.load_model(folder, head="ForCausalLM", strict=True)
    zoo.save(ours, tmp_path)
    for model in (ours, zoo.load_model(tmp_path, strict=True)):
        assert model.architecture == "WhisperForCausalLM"
        np.testing.assert_allclose(model(ids, encoder_hidden_states=states), wanted, atol=1e-4)


def test_languages_by_name_and_samples_with_their_rate(folder):
    transcribe, samples = zoo.load(folder), np.sin(np.arange(8000) / 9).astype(np.float32)
    wanted = transcribe(samples, language="de", temperature=0)
    assert transcribe(samples, language="German", temperature=0) == wanted
    for key in ("array", "raw"):
        given = {key: samples.tolist(), "sampling_rate": 16000}
        assert transcribe(given, language="german", temperature=0) == wanted
        assert transcribe([given], language="de", temperature=0) == [wanted]
    with pytest.raises(InputError, match="did you mean 'german'"):
        transcribe(samples, language="Germann")
    with pytest.raises(InputError, match="sampling_rate 8000, expected 16000"):
        transcribe({"array": samples, "sampling_rate": 8000})
    with pytest.raises(InputError, match="audio is of type dict, expected a recording or a list of recordings"):
        transcribe({"file": samples})


def test_names_of_languages_are_those_of_transformers():
    theirs = pytest.importorskip("transformers.models.whisper.tokenization_whisper", reason="needs transformers")
    assert theirs.TO_LANGUAGE_CODE == LANGUAGE_CODES
