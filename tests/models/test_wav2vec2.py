"""wav2vec 2.0: texts and times against transformers' pipeline, long recordings, labels, and what is refused."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.vocabularies import write_json
from tests.models.test_whisper import as_wav, noise
from zoo.audio.waveform import windows
from zoo.errors import BatchError, CheckpointError, ConfigError, InputError, TokenizerError, UnsupportedError
from zoo.files.folder import CheckpointFolder
from zoo.models.wav2vec2 import Wav2Vec2Config
from zoo.tasks.subtitles import to_srt, to_vtt
from zoo.text.ctc_vocabulary import CtcVocabulary, Span

SPECS = ("wav2vec2-base-960h", "wav2vec2-large-960h-lv60")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(SPECS[0], tmp_path_factory.mktemp("wav2vec2"))


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.mark.parametrize("spec", SPECS)
def test_texts_and_times_are_those_of_the_pipeline(spec, tmp_path):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build(spec, tmp_path)
    transcribe, theirs = zoo.load(folder), transformers.pipeline("automatic-speech-recognition", model=str(folder))
    recordings = [noise(count, count) for count in (700, 16000, 50333)]
    for sizes in (
        {"chunk_length_s": 30.0},
        {"chunk_length_s": 0.5},
        {"chunk_length_s": 0.4, "stride_length_s": (0, 0.1)},
    ):
        for unit in ("char", "word"):
            every = transcribe(recordings, timestamps=unit, **sizes)
            for recording, found in zip(recordings, every, strict=True):
                wanted = theirs(recording.copy(), return_timestamps=unit, **sizes)
                assert found.text == wanted["text"]
                parts = found.characters if unit == "char" else [w._replace(text=w.text.strip()) for w in found.words]
                assert [tuple(one) for one in parts] == [(*one["timestamp"], one["text"]) for one in wanted["chunks"]]


def test_windows_are_cut_where_they_should_be():
    samples = np.arange(100, dtype=np.float32)
    for size, left, right in ((100, 10, 10), (99, 0, 0), (30, 10, 5), (7, 0, 0)):
        found, heard, begin = list(windows(iter(np.array_split(samples, 9)), size, left, right)), [], 0
        for part, before, after in found:
            np.testing.assert_array_equal(part, samples[begin : begin + size])
            heard.append(part[before : len(part) - after])
            begin += size - left - right
        np.testing.assert_array_equal(np.concatenate(heard), samples)
        assert all(len(a) == size for (a, *_), _ in pairwise(found))


def test_a_long_recording_takes_the_memory_of_a_window(folder):
    """Its blocks are read as they are heard: no window waits for the end."""
    transcribe, read = zoo.load(folder), []

    class Blocks:
        def __init__(self, count):
            self.count = count

        def __iter__(self):
            for i in range(self.count):
                read.append(i)
                yield noise(4000, i)

    seen = []
    for window, *_ in windows(iter(Blocks(50)), 8000, 800, 800):
        seen.append((len(read), len(window)))
    assert max(size for _, size in seen) == 8000
    assert seen[0][0] < 5 < 50 == len(read)
    assert transcribe(noise(16000 * 3), chunk_length_s=0.5).text


def test_segments(folder):
    transcribe, recording = zoo.load(folder), noise(16000)
    words = transcribe(recording, return_timestamps="word")
    assert transcribe(recording, word_timestamps=True, timestamps="char")[:4] == words[:4]
    phrases, whole = transcribe(recording), transcribe(recording, timestamps=False)
    assert phrases.text == words.text == whole.text == " ".join(one.text.strip() for one in words.words)
    assert phrases.segments == words.segments
    assert [one.text for one in whole.segments] == [whole.text]
    assert whole.segments[0][:2] == (0.0, 1.0)
    assert " ".join(one.text for one in phrases.segments) == words.text
    assert transcribe([recording[:0], recording[:20]]) == [type(words)("", None, [], None, n / 16000) for n in (0, 20)]
    assert transcribe.results.row(words).keys() == {"text", "language", "segments", "duration", "words"}
    cues = to_vtt(words).split("\n\n")[1:]
    assert len(cues) == len(words.segments)
    assert sum(cue.count("<") for cue in cues) == len(words.words) - len(cues)
    assert to_srt(phrases).startswith("1\n00:00:0")


def test_files_and_bad_recordings(folder, tmp_path):
    transcribe, recording = zoo.load(folder), noise(16000)
    assert zoo.load(transcribe.save(tmp_path / "saved"))(recording) == transcribe(recording)
    for wrong in (np.zeros((12, 500), np.float32), np.full(500, np.nan, np.float32)):
        with pytest.raises(InputError, match=r"expected finite floats \(samples,\)"):
            transcribe(wrong)
    with pytest.raises(BatchError):
        transcribe([recording, np.zeros((2, 5), np.float32)])
    for options, says in (
        ({"timestamps": "line"}, "timestamps is 'line', expected True, False, 'word' or 'char'"),
        ({"chunk_length_s": 0}, "chunk_length_s is 0, expected seconds, at most 600"),
        ({"chunk_length_s": 1e9}, "expected seconds, at most 600"),
        ({"chunk_length_s": "long"}, "chunk_length_s is 'long'"),
        (
            {"chunk_length_s": 1, "stride_length_s": 0.6},
            "expected more than stride_length_s on both sides, 0.6 and 0.6",
        ),
        ({"stride_length_s": (1, 2, 3)}, "stride_length_s is"),
        ({"language": "fr"}, "language is 'fr', expected None"),
        ({"translate": True}, "translate is True, expected False"),
        ({"vad_filter": True}, "vad_filter is True, expected False"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"word_timestamps": "yes"}, "word_timestamps is 'yes', expected True or False"),
    ):
        with pytest.raises(InputError, match=says):
            transcribe(recording, **options)
    model = transcribe.model
    with pytest.raises(InputError, match="input_values have 10 samples, expected at least 29"):
        model(np.zeros((1, 10), np.float32))
    for mask in ([[0] * 50 + [1] * 50], [[1] * 20 + [0] * 80]):
        with pytest.raises(InputError, match="attention_mask must be 1 for a recording's samples, at least 29 of them"):
            model(np.zeros((1, 100), np.float32), np.array(mask))
    with pytest.raises(InputError, match="input_values contain NaN"):
        model(np.full((1, 100), np.nan, np.float32))
    pytest.importorskip("av", reason="needs av, which reads audio files")
    (tmp_path / "a.wav").write_bytes(as_wav(recording, 16000))
    assert transcribe(tmp_path / "a.wav").text == transcribe(str(tmp_path / "a.wav")).text != ""
    assert transcribe(as_wav(recording[::2], 8000)).text


def test_a_row_of_a_padded_batch_is_what_it_is_alone(tmp_path):
    """With norms over channels, which see no padding."""
    model = zoo.load_model(build(SPECS[1], tmp_path))
    given = model.example(3, rows=3)
    together = model(**given)
    for row, x, mask in zip(together, given["input_values"], given["attention_mask"], strict=True):
        alone = model(x[None, : mask.sum()])[0]
        assert np.abs(row[: len(alone)] - alone).max() < 1e-4


def test_characters():
    folder: object = None
    known = CtcVocabulary({0: "-", 1: "|", 2: "A", 3: "B", 4: "?"}, 0, 4, "|", " ", True, False, folder, [])  # type: ignore[arg-type]
    spans = known.spans(np.array([0, 2, 2, 0, 2, 1, 1, 3, 3, 9, 0]))
    assert spans == [Span("A", 1, 3), Span("A", 4, 5), Span(" ", 5, 7), Span("B", 7, 9), Span("?", 9, 10)]
    assert known.text(spans) == "aa b?"
    assert list(known.words(spans)) == [Span("AA", 1, 5), Span("B?", 7, 10)]
    assert (known.spans(np.zeros(0, np.int64)), known.text([]), list(known.words([]))) == ([], "", [])


def change(folder, name, **fields):
    write_json(folder / name, {**json.loads((folder / name).read_text()), **fields})


def test_vocabularies_as_transformers_reads_them(copy):
    """Tokens of no file get the next ids; small letters, other delimiters, several languages."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    ids = np.random.default_rng(0).integers(0, 9, 60)
    for vocab, fields in (
        ({"a": 0, "|": 1, "<pad>": 2, "'": 3, "b": 4}, {}),
        ({"A": 1, "/": 2, "<pad>": 0, "S": 3, "'": 4}, {"word_delimiter_token": "/", "do_lower_case": True}),
        ({"eng": {"a": 0, "<pad>": 1, "|": 2}, "deu": {"ä": 0}}, {"target_lang": "eng"}),
        ({"a": 0, "|": 1, "'": 2, "s": 3, ".": 4}, {"clean_up_tokenization_spaces": True}),
    ):
        write_json(copy / "vocab.json", vocab)
        plain = {"target_lang": None, "word_delimiter_token": "|", "do_lower_case": False}
        change(copy, "tokenizer_config.json", **plain | fields)
        # Not from_pretrained: version 5 of it forgets a word_delimiter_token other than "|".
        theirs = transformers.Wav2Vec2CTCTokenizer(str(copy / "vocab.json"), **fields)
        ours = CtcVocabulary.from_folder(CheckpointFolder.of(copy))
        assert ours.blank == theirs.pad_token_id
        assert ours.text(ours.spans(ids)) == theirs.decode(ids)


def test_vocabularies_that_are_refused(copy):
    change(copy, "tokenizer_config.json", pad_token=None)
    change(copy, "special_tokens_map.json", pad_token=None)
    with pytest.raises(TokenizerError, match="there is no pad_token, which is the blank between characters in CTC"):
        zoo.load(copy)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        change(copy, name, pad_token="[blank]")
    with pytest.raises(TokenizerError, match=r"the blank, '\[blank\]', has the id 32, and the model has 32 logits"):
        zoo.load(copy)
    for fields, error, says in (
        ({"tokenizer_class": "Wav2Vec2PhonemeCTCTokenizer"}, UnsupportedError, "expected 'Wav2Vec2CTCTokenizer'"),
        ({"do_lower_case": "yes"}, TokenizerError, "do_lower_case and clean_up_tokenization_spaces are"),
        ({"word_delimiter_token": 5}, TokenizerError, "word_delimiter_token is 5, expected a text"),
        ({"target_lang": "fra"}, TokenizerError, "target_lang is 'fra', which has no vocabulary here"),
    ):
        raw = (copy / "tokenizer_config.json").read_text()
        change(copy, "tokenizer_config.json", **fields)
        with pytest.raises(error, match=says):
            zoo.load(copy)
        (copy / "tokenizer_config.json").write_text(raw)
    for vocab, says in (
        ({"a": 0, "b": 0}, "1 token with the id of another"),
        ({"eng": {"a": 0}, "deu": {"a": 0}}, r"a vocabulary for each language \(eng, deu\), and no target_lang"),
        ({"a": -1}, "has the id -1"),
    ):
        write_json(copy / "vocab.json", vocab)
        with pytest.raises(TokenizerError, match=says):
            zoo.load(copy)


def test_feature_extractors_that_are_refused(copy):
    for fields, error, says in (
        (
            {"feature_extractor_type": "WhisperFeatureExtractor"},
            UnsupportedError,
            "expected 'Wav2Vec2FeatureExtractor'",
        ),
        ({"feature_size": 2}, UnsupportedError, "feature_size = 2 is not implemented, only 1 is"),
        ({"sampling_rate": 0}, ConfigError, "sampling_rate = 0, expected a whole number"),
        ({"do_normalize": 1}, ConfigError, "do_normalize = 1, expected true or false"),
    ):
        raw = (copy / "preprocessor_config.json").read_text()
        change(copy, "preprocessor_config.json", **fields)
        with pytest.raises(error, match=says):
            zoo.load(copy)
        (copy / "preprocessor_config.json").write_text(raw)


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"add_adapter": True}, UnsupportedError, "add_adapter = True is not implemented"),
        ({"conv_dim": [3, 4]}, ConfigError, "have 2, 7, 7 numbers, expected one for each convolution"),
        ({"conv_stride": [0] * 7}, ConfigError, "expected numbers of 1 ... 65536"),
        ({"feat_extract_norm": "batch"}, ConfigError, "feat_extract_norm = 'batch', expected 'group' or 'layer'"),
        ({"ctc_loss_reduction": "none"}, ConfigError, "ctc_loss_reduction = 'none', expected"),
        ({"num_conv_pos_embedding_groups": 7}, ConfigError, "does not divide hidden_size"),
    ],
)
def test_configs_that_are_refused(fields, error, says):
    with pytest.raises(error, match=says):
        Wav2Vec2Config.from_dict(fields)


def test_a_weight_norm_has_one_of_its_two_names(copy):
    from zoo.weights.files import open_weights
    from zoo.weights.safetensors import write_safetensors

    source = open_weights(copy)
    stored = {name: source.read(name)._replace(array=source.read(name).array.copy()) for name in source.names()}
    name = "wav2vec2.encoder.pos_conv_embed.conv.weight_g"
    stored[name.replace("weight_g", "parametrizations.weight.original0")] = stored[name]
    write_safetensors(copy / "model.safetensors", stored)
    with pytest.raises(CheckpointError, match="are two spellings of the same tensor"):
        zoo.load_model(copy)


def test_labels_of_recordings_are_those_of_the_pipeline(tmp_path):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build("wav2vec2-base-superb-ks", tmp_path)
    classify, theirs = zoo.load(folder), transformers.pipeline("audio-classification", model=str(folder))
    recordings = [noise(count, seed) for seed, count in enumerate((12000, 16000, 12000, 5000))]
    for ours, recording in zip(classify(recordings, batch_size=3), recordings, strict=True):
        wanted = theirs(recording.copy())
        assert [label for label, _ in ours] == [one["label"] for one in wanted]
        np.testing.assert_allclose([score for _, score in ours], [one["score"] for one in wanted], rtol=1e-3)
    with pytest.raises(InputError, match="the audio has 5 samples, and the model hears nothing in less than 29"):
        classify(recordings[0][:5])


def test_labels_of_the_loss(folder):
    pytest.importorskip("torch", reason="needs torch, which trains")
    from zoo.apps.train import compute_loss

    model = zoo.load_model(folder, device="torch:cpu", trainable=True)
    given = model.example(0, rows=2)
    assert compute_loss(model, given, np.array([[5, 6, 7], [8, -100, -100]])).item() > 0
    for labels, says in (
        ([[5, 32], [1, 2]], "labels are in 1 ... 32, expected 0 ... 31"),
        ([[5]], "a row for each of 2"),
    ):
        with pytest.raises(InputError, match=says):
            compute_loss(model, given, np.array(labels))
