"""AST's spectrograms and labels, as transformers makes them from the same recordings."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.audio.filter_banks import FilterBankExtractor
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.files.folder import CheckpointFolder

NOISE = (np.random.default_rng(0).standard_normal(20_000) * 0.1).astype(np.float32)


@pytest.mark.parametrize("count", [400, 401, 559, 560, 10_000, 20_000])
@pytest.mark.parametrize("changes", [{}, {"do_normalize": False}, {"num_mel_bins": 20, "mean": 1, "std": 2}])
def test_spectrograms_are_those_of_transformers(tmp_path, count, changes):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw = {"feature_extractor_type": "ASTFeatureExtractor", "max_length": 100, **changes}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(raw))
    ours = FilterBankExtractor.from_folder(CheckpointFolder(tmp_path))
    theirs = transformers.ASTFeatureExtractor.from_pretrained(tmp_path)
    wanted = theirs(NOISE[:count], sampling_rate=16000, return_tensors="np")["input_values"][0].T
    found = ours(NOISE[:count])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_silence_is_finite():
    assert np.isfinite(FilterBankExtractor(max_length=50)(np.zeros(5000, np.float32))).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("ast-finetuned-audioset", tmp_path_factory.mktemp("ast") / "ast")


def test_labels(folder):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    classify = zoo.load(folder)
    reference = transformers.pipeline("audio-classification", str(folder), device="cpu")
    for count in (400, 9000):
        wanted = reference({"array": NOISE[:count], "sampling_rate": 16000}, top_k=7)
        found = classify({"array": NOISE[:count], "sampling_rate": 16000}, top_k=7)
        assert [one.label for one in found] == [one["label"] for one in wanted]
        np.testing.assert_allclose([one.score for one in found], [one["score"] for one in wanted], rtol=1e-3)
    with pytest.warns(UserWarning, match=r"longer than 0\.615 s"):
        assert len(classify({"array": NOISE, "sampling_rate": 16000})) == 5
    with pytest.raises(InputError, match="has 399 samples, and the model hears nothing in less than 400"):
        classify({"array": NOISE[:399], "sampling_rate": 16000})


def test_saved_and_read_again(folder, tmp_path):
    classify = zoo.load(folder)
    again = zoo.load(zoo.save(classify, tmp_path / "saved"))
    sound = {"array": NOISE[:5000], "sampling_rate": 16000}
    assert again(sound) == classify(sound)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"feature_extractor_type": "WhisperFeatureExtractor"}, UnsupportedError, "expected 'ASTFeatureExtractor'"),
        ({"max_length": 0}, ConfigError, "max_length = 0, expected a whole number from 1"),
        ({"num_mel_bins": True}, ConfigError, "num_mel_bins = True, expected a whole number"),
        ({"mean": "loud"}, ConfigError, "mean = 'loud', expected a number"),
        ({"std": 0}, ConfigError, "std = 0, sampling_rate = 16000: one is too small"),
        ({"do_normalize": 1}, ConfigError, "do_normalize = 1, expected true or false"),
        ({"padding_value": 1.0}, UnsupportedError, "padding_value"),
        ({"max_length": 1 << 19}, ConfigError, "take more than"),
        ({"num_mel_bins": 20}, ConfigError, "makes 20 bins x 60 frames, and the model reads 24 x 60"),
    ],
)
def test_what_does_not_fit_is_refused(folder, tmp_path, changes, error, says):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    raw = json.loads((folder / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**raw, **changes}))
    with pytest.raises(error, match=says):
        zoo.load(tmp_path)
