"""Wav2Vec2-BERT: its spectrograms, texts and times against transformers, labels, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.models.test_whisper import noise
from zoo.audio.frames import FrameExtractor
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.files.folder import CheckpointFolder
from zoo.models.wav2vec2_bert import Wav2Vec2BertConfig

FILE = "preprocessor_config.json"
KIND = {"feature_extractor_type": "SeamlessM4TFeatureExtractor"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("w2v-bert-2.0-ctc", tmp_path_factory.mktemp("w2v-bert"))


@pytest.mark.parametrize("count", [560, 719, 720, 880, 20_001])
@pytest.mark.parametrize("bins", [80, 12])
def test_spectrograms_are_those_of_transformers(count, bins, tmp_path):
    pytest.importorskip("torch", reason="needs torch, for transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw = {**KIND, "num_mel_bins": bins, "feature_size": bins}
    (tmp_path / FILE).write_text(json.dumps(raw))
    ours = FrameExtractor.from_folder(CheckpointFolder(tmp_path))
    theirs = transformers.SeamlessM4TFeatureExtractor.from_pretrained(tmp_path)
    sound = noise(count, 0)
    wanted = theirs(sound.copy(), sampling_rate=16000, return_tensors="np")
    heard = wanted["input_features"][0][wanted["attention_mask"][0] > 0]  # not the state of half a pair of frames
    found = ours(sound)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, heard, rtol=1e-4, atol=1e-4)


def test_silence_is_finite():
    assert np.isfinite(FrameExtractor()(np.zeros(5000, np.float32))).all()


def test_texts_and_times_are_those_of_the_pipeline(folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    transcribe, theirs = zoo.load(folder), transformers.pipeline("automatic-speech-recognition", model=str(folder))
    recordings = [noise(count, count) for count in (880, 16000, 50480)]  # each of an even number of frames
    for sizes in ({"chunk_length_s": 30.0}, {"chunk_length_s": 1.0}):
        for unit in ("char", "word"):
            every = transcribe(recordings, timestamps=unit, **sizes)
            for recording, found in zip(recordings, every, strict=True):
                wanted = theirs(recording.copy(), return_timestamps=unit, **sizes)
                assert found.text == wanted["text"]
                parts = found.characters if unit == "char" else [w._replace(text=w.text.strip()) for w in found.words]
                assert [tuple(one) for one in parts] == [(*one["timestamp"], one["text"]) for one in wanted["chunks"]]
    assert transcribe(noise(559, 0)).text == ""


def test_labels(tmp_path):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build("w2v-bert-classes", tmp_path)
    classify, theirs = zoo.load(folder), transformers.pipeline("audio-classification", model=str(folder))
    recordings = [noise(count, count) for count in (880, 5040, 880)]
    for recording, found in zip(recordings, classify(recordings), strict=True):
        wanted = theirs(recording.copy())
        assert [one.label for one in found] == [one["label"] for one in wanted]
        np.testing.assert_allclose([one.score for one in found], [one["score"] for one in wanted], rtol=1e-3)
    with pytest.raises(InputError, match="has 559 samples, and the model hears nothing in less than 560"):
        classify(noise(559, 0))


def test_what_does_not_fit(folder):
    model = zoo.load_model(folder)
    with pytest.raises(InputError, match=r"expected floats \(B, T, 160\)"):
        model(np.zeros((1, 4, 80), np.float32))
    with pytest.raises(InputError, match="0 after its end"):
        model(np.zeros((1, 4, 160), np.float32), attention_mask=np.array([[0, 1, 1, 1]]))
    with pytest.raises(ConfigError, match="frames of 24 numbers, and the model reads frames of 160"):
        FrameExtractor(num_mel_bins=12).check(model.config)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"stride": 3}, UnsupportedError, "stride = 3"),
        ({"sampling_rate": "fast"}, ConfigError, "expected a whole number"),
        ({"sampling_rate": 40}, ConfigError, "expected more than 40"),
        ({"feature_extractor_type": "ParrotFeatureExtractor"}, UnsupportedError, "ParrotFeatureExtractor"),
    ],
)
def test_extractors_that_are_refused(changes, error, says, tmp_path):
    (tmp_path / FILE).write_text(json.dumps({**KIND, **changes}))
    with pytest.raises(error, match=says):
        FrameExtractor.from_folder(CheckpointFolder(tmp_path))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("position_embeddings_type", "rotary", UnsupportedError),
        ("position_embeddings_type", "relative", UnsupportedError),
        ("conv_depthwise_kernel_size", 4, ConfigError),
        ("use_intermediate_ffn_before_adapter", True, ConfigError),
        ("left_max_position_embeddings", -1, ConfigError),
        ("ctc_loss_reduction", "none", ConfigError),
    ],
)
def test_configs_that_are_refused(field, value, error):
    with pytest.raises(error, match=field):
        Wav2Vec2BertConfig.from_dict({field: value})


def test_adapters_of_other_strides_are_refused():
    with pytest.raises(UnsupportedError, match="adapter_stride = 3"):
        Wav2Vec2BertConfig.from_dict({"add_adapter": True, "adapter_stride": 3})
