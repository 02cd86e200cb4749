"""Speech by CTC with beams: alternatives, hotwords, a language model, and what is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.models.test_whisper import noise
from tests.text.arpa_model import ArpaModel, State
from tests.text.test_ctc_beams import GOLDEN
from zoo.audio.waveform import windows
from zoo.errors import InputError, NotFoundError
from zoo.text.ctc_beams import CtcBeams
from zoo.text.ngrams import NgramModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("wav2vec2-base-960h", tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module")
def transcribe(folder):
    return zoo.load(folder)


@pytest.fixture
def ngrams():
    return NgramModel(ArpaModel(GOLDEN["arpa"]), State, sorted(GOLDEN["words"]), alpha=1.0)


def test_a_language_model_weighs_the_states_of_all_windows(transcribe, ngrams):
    recordings = [noise(1000, 1), noise(2100, 2)]
    sizes = {"chunk_length_s": 0.05, "stride_length_s": 0}
    found = transcribe(recordings, language_model=ngrams, n_best=3, num_beams=20, word_timestamps=True, **sizes)
    assert found != transcribe(recordings, word_timestamps=True, **sizes)
    for one, recording in zip(found, recordings, strict=True):
        beams = CtcBeams(transcribe.tokenizer, 20, ngrams)
        for window, _, _ in windows(iter([recording]), *transcribe._sizes(0.05, 0)):
            beams.advance(np.asarray(transcribe.model(transcribe.features(window)[None]))[0])
        wanted = beams.finish()[:3]
        assert [text for text, _ in one.alternatives] == [transcribe.tokenizer.text(text.spans) for text in wanted]
        assert one.text == one.alternatives[0].text
        assert "".join(word.text for word in one.words).strip() == one.text
        np.testing.assert_allclose([score for _, score in one.alternatives], [text.score for text in wanted], atol=1e-3)


def test_alternatives_are_written_where_they_are_asked_for(transcribe):
    found = transcribe(noise(1000, 1), n_best=2)
    assert transcribe.results.json(found)["alternatives"] == found.alternatives
    assert transcribe.results.row(found)["alternatives"] == [one._asdict() for one in found.alternatives]
    assert found.alternatives[0].score >= found.alternatives[1].score
    assert transcribe(noise(1000, 1)).alternatives is None
    assert "alternatives" not in transcribe.results.json(transcribe(noise(1000, 1)))


def test_hotwords_are_likelier(transcribe):
    recording = noise(1600, 5)
    plain = transcribe(recording, num_beams=100).text
    other = next(w for w in transcribe(recording, n_best=30).alternatives[-1].text.split() if w not in plain.split())
    assert other not in plain.split()
    assert other in transcribe(recording, hotwords=other.lower()).text.split()
    assert transcribe(recording, hotwords=[other], beam_width=100) == transcribe(recording, hotwords=other)
    assert other not in transcribe(recording, hotwords=other, hotword_weight=0).text.split()


def test_the_own_language_model_is_used_when_asked(folder, tmp_path):
    own = shutil.copytree(folder, tmp_path / "own")
    (own / "language_model").mkdir()
    (own / "language_model" / "words.arpa").write_text(GOLDEN["arpa"])
    (own / "language_model" / "unigrams.txt").write_text("\n".join(GOLDEN["words"]))
    transcribe, recording = zoo.load(own), noise(1000, 1)
    with pytest.warns(UserWarning, match="has a language model, which language_model=True searches with"):
        plain = transcribe(recording)
    assert transcribe(recording, language_model=False) == plain
    pytest.importorskip("kenlm", reason="needs kenlm, which a compiler builds: the extra ngrams")
    found = transcribe(recording, language_model=True)
    assert found == transcribe(recording, language_model=own / "language_model")
    assert found != plain


def test_a_file_of_n_grams_is_read_once(transcribe, ngrams, monkeypatch):
    read: list[str] = []
    monkeypatch.setattr(NgramModel, "from_path", lambda path: read.append(path) or ngrams)
    for path in ("a.arpa", "a.arpa", "b.arpa"):
        transcribe(noise(1000, 1), language_model=path)
    assert read == ["a.arpa", "b.arpa"]


def test_what_cannot_be_searched_is_refused(transcribe):
    recording = noise(1000, 1)
    for options, message in (
        ({"language_model": True}, "language_model is True, and .* has no folder language_model"),
        ({"language_model": 3}, "language_model is 3, expected a path"),
        ({"num_beams": 0}, "num_beams is 0"),
        ({"num_beams": 20_000}, "num_beams is 20000, expected n_best, 1, up to 10,000"),
        ({"num_beams": 2, "n_best": 3}, "num_beams is 2, expected n_best, 3"),
        ({"n_best": 0}, "n_best is 0"),
        ({"prompt": "bear"}, "prompt is 'bear', expected None"),
        ({"hotword_weight": float("nan"), "hotwords": "a"}, "hotword_weight is nan"),
        ({"hotwords": "naïve"}, "hotwords has 'naïve', which .* has no characters for"),
    ):
        with pytest.raises(InputError, match=message):
            transcribe(recording, **options)
    with pytest.raises(NotFoundError, match="no file or folder"):
        transcribe(recording, language_model="none.arpa")


@pytest.mark.parametrize("spec", ["whisper-base", "moonshine-tiny"])
def test_other_models_of_speech_have_no_language_model(spec, tmp_path):
    with pytest.raises(InputError, match="language_model is"):
        zoo.load(build(spec, tmp_path))(noise(1000, 1), language_model="words.arpa")
