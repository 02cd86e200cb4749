"""Parakeet: its spectrograms, pieces, texts and times against transformers, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.models.test_whisper import noise
from zoo.audio.mel_frames import MelExtractor
from zoo.errors import ConfigError, InputError, TokenizerError, UnsupportedError
from zoo.files.folder import CheckpointFolder
from zoo.models.parakeet import ParakeetCTCConfig
from zoo.text.ctc_pieces import CtcPieces
from zoo.text.ctc_vocabulary import Span

FILE = "preprocessor_config.json"
KIND = {"feature_extractor_type": "ParakeetFeatureExtractor"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("parakeet-ctc-0.6b", tmp_path_factory.mktemp("parakeet"))


@pytest.mark.parametrize("count", [320, 479, 480, 1281, 20_001])
@pytest.mark.parametrize(
    "fields", [{}, {"feature_size": 12, "n_fft": 400, "win_length": 320}, {"preemphasis": None, "sampling_rate": 8000}]
)
def test_spectrograms_are_those_of_transformers(count, fields, tmp_path):
    pytest.importorskip("torch", reason="needs torch, for transformers")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    (tmp_path / FILE).write_text(json.dumps({**KIND, **fields}))
    ours = MelExtractor.from_folder(CheckpointFolder(tmp_path))
    theirs = transformers.ParakeetFeatureExtractor.from_pretrained(tmp_path)
    sound = noise(count, 0)
    wanted = theirs(sound.copy(), sampling_rate=ours.sampling_rate, return_tensors="pt")
    heard = wanted["input_features"][0][wanted["attention_mask"][0] > 0].numpy()
    found = ours(sound)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, heard, rtol=1e-3, atol=1e-3)  # whose transform is in float32


def test_silence_is_finite():
    assert np.isfinite(MelExtractor()(np.zeros(5000, np.float32))).all()


def test_texts_are_those_of_transformers(folder):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    transcribe, processor = zoo.load(folder), transformers.AutoProcessor.from_pretrained(folder)
    theirs = transformers.ParakeetForCTC.from_pretrained(folder).eval()
    recordings = [noise(count, count) for count in (480, 1280, 16000, 50481)]
    for recording, found in zip(recordings, transcribe(recordings, timestamps="char"), strict=True):
        given = processor(recording.copy(), sampling_rate=16000)
        with torch.no_grad():
            ids = theirs(**given).logits[0][: int((given["attention_mask"].sum() + 7) // 8)].argmax(-1)
        wanted = processor.tokenizer.decode(ids, skip_special_tokens=True)
        assert found.text == wanted.strip()
        assert "".join(one.text for one in found.characters).strip() == wanted.strip()
        assert all(one.start % 0.08 < 1e-6 or 0.08 - one.start % 0.08 < 1e-6 for one in found.characters)
        words = transcribe(recording, timestamps="word").words
        assert [word.text.strip() for word in words] == wanted.split()
    assert transcribe(noise(319, 0)).text == ""
    short = transcribe(recordings, chunk_length_s=1.0)
    assert all(one.text for one in short[2:])


def test_pieces_and_their_words(folder):
    pieces = CtcPieces.from_folder(CheckpointFolder(folder))
    ids = {text: i for i, text in pieces.characters.items()}
    blank = pieces.blank
    heard = [ids[" the"], ids[" the"], blank, ids["n"], ids["n"], 0, ids["n"], ids[" "], ids["a"], blank, ids[" "]]
    spans = pieces.spans(np.array(heard))
    assert [one.text for one in spans] == [" the", "n", "n", " ", "a", " "]  # <unk>, of id 0, writes nothing
    assert pieces.text(spans) == "thenn a"
    assert list(pieces.words(spans)) == [Span("thenn", 0, 7), Span("a", 8, 9)]


def test_padding_changes_nothing(folder):
    model = zoo.load_model(folder)
    given = model.example(rows=2, length=3)
    alone = model(given["input_features"][1:, : given["attention_mask"][1].sum()])
    np.testing.assert_allclose(model(**given)[1:, : alone.shape[1]], alone, rtol=1e-4, atol=1e-4)


def test_what_does_not_fit(folder, tmp_path):
    model = zoo.load_model(folder)
    with pytest.raises(InputError, match=r"expected floats \(B, T, 16\)"):
        model(np.zeros((1, 4, 80), np.float32))
    with pytest.raises(ConfigError, match="frames of 80 numbers, and the model reads frames of 16"):
        MelExtractor().check(model.config)
    pieces = CtcPieces.from_folder(CheckpointFolder(folder))
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: the blank, '<pad>', has the id 100"):
        pieces.check(100)
    raw, config = (json.loads((folder / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json"))
    (tmp_path / "tokenizer.json").write_text(json.dumps({**raw, "decoder": {"type": "Fuse"}}))
    with pytest.raises(UnsupportedError, match="the decoder 'Fuse'"):
        CtcPieces.from_folder(CheckpointFolder(tmp_path))
    (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "pad_token": None}))
    with pytest.raises(TokenizerError, match="no pad_token"):
        CtcPieces.from_folder(CheckpointFolder(tmp_path))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"hop_length": 80}, UnsupportedError, "hop_length = 80"),
        ({"sampling_rate": "fast"}, ConfigError, "expected a whole number"),
        ({"n_fft": 1 << 20}, ConfigError, "n_fft = 1048576"),
        ({"n_fft": 256}, ConfigError, "win_length = 400, n_fft = 256"),
        ({"preemphasis": "much"}, ConfigError, "preemphasis = 'much'"),
        ({"feature_extractor_type": "ParrotFeatureExtractor"}, UnsupportedError, "ParrotFeatureExtractor"),
    ],
)
def test_extractors_that_are_refused(changes, error, says, tmp_path):
    (tmp_path / FILE).write_text(json.dumps({**KIND, **changes}))
    with pytest.raises(error, match=says):
        MelExtractor.from_folder(CheckpointFolder(tmp_path))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"subsampling_conv_kernel_size": 5}, UnsupportedError),
        ({"subsampling_factor": 6}, ConfigError),
        ({"conv_kernel_size": 4}, ConfigError),
        ({"num_mel_bins": 20}, ConfigError),
    ],
)
def test_encoders_that_are_refused(fields, error):
    with pytest.raises(error, match=next(iter(fields))):
        ParakeetCTCConfig.from_dict({"encoder_config": fields})
    with pytest.raises(ConfigError, match="ctc_loss_reduction"):
        ParakeetCTCConfig.from_dict({"ctc_loss_reduction": "none"})
