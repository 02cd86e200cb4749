"""CtcBeams: the probability of texts against all their paths, scores against pyctcdecode's, times, and bad models."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checks.ctc_beams import GOLDEN_FILE, PIECES, states
from tests.text.arpa_model import ArpaModel, State
from zoo.errors import CheckpointError, InputError, NotFoundError
from zoo.files.folder import CheckpointFolder
from zoo.text.ctc_beams import CtcBeams
from zoo.text.ctc_pieces import CtcPieces
from zoo.text.ctc_vocabulary import CtcVocabulary
from zoo.text.ngrams import NgramModel

GOLDEN = json.loads(GOLDEN_FILE.read_text())


def vocabulary(labels: list[str]) -> CtcVocabulary:
    kind, delimiter = (CtcPieces, None) if labels == PIECES else (CtcVocabulary, "|")
    texts = {i: label.replace("▁", " ") for i, label in enumerate(labels)}
    return kind(texts, 0, None, delimiter, " ", False, False, CheckpointFolder("."), [])


def ngrams(case: dict[str, Any]) -> NgramModel | None:
    if "ngrams" not in case:
        return None
    return NgramModel(ArpaModel(GOLDEN["arpa"]), State, sorted(case.get("unigrams", GOLDEN["words"])), **case["ngrams"])


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_texts_and_scores_are_those_of_pyctcdecode(case):
    words = vocabulary(case["labels"])
    beams = CtcBeams(words, case["width"], ngrams(case), case.get("hotwords", ()))
    logits = states(case["seed"], case["count"], len(case["labels"]))
    for block in np.array_split(logits, 3):
        beams.advance(block)
    found = beams.finish()
    wanted = dict(case["texts"])
    scores = {words.text(one.spans): one.score for one in found}
    assert words.text(found[0].spans) == case["texts"][0][0]
    for text, score in wanted.items():
        assert scores[text] == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_probability_is_that_of_all_paths_of_a_text(count):
    words, logits = vocabulary(["<pad>", "|", "A", "B"]), np.random.default_rng(count).normal(size=(count, 4))
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    paths: defaultdict[str, float] = defaultdict(float)
    for path in product(range(4), repeat=count):
        text = "".join("  AB"[i] for i, _ in groupby(path) if i)
        paths[" ".join(text.split())] += float(np.exp(scores[range(count), path].sum()))
    beams = CtcBeams(words, 10_000)
    beams.advance(logits)
    found = {words.text(one.spans): one.score for one in beams.finish()}
    assert found.keys() == paths.keys()
    for text, score in found.items():
        assert score == pytest.approx(np.log(paths[text]), abs=1e-9)


def test_times_are_those_of_the_likeliest_path():
    words, path = vocabulary(["<pad>", "|", "A", "B"]), [0, 2, 2, 0, 3, 1, 1, 0, 2, 0, 2, 2]
    logits = np.zeros((len(path), 4), np.float32)
    logits[range(len(path)), path] = 9.0
    beams = CtcBeams(words, 10)
    beams.advance(logits)
    assert beams.finish()[0].spans == words.spans(np.array(path))


def test_nothing_is_heard_without_states():
    beams = CtcBeams(vocabulary(["<pad>", "|", "A", "B"]), 10)
    assert [(one.spans, one.score) for one in beams.finish()] == [([], 0.0)]


def test_memory_is_that_of_the_texts_alone():
    beams = CtcBeams(vocabulary(["<pad>", "|", "A", "B"]), 5, ngrams(GOLDEN["cases"][2]))
    beams.advance(states(0, 2000, 4))
    assert len(beams.beams) <= 5
    assert len(beams._longer) < 2000  # words of texts that were left are forgotten


def test_hotwords_are_in_the_case_of_the_vocabulary():
    words = vocabulary(["<pad>", "|", "A", "B", "'"])
    assert words.hotwords(["ab, Ba", "a'b!"]) == ["AB", "BA", "A'B"]
    with pytest.raises(InputError, match=r"'Zoo', which .*vocab.json has no characters for"):
        words.hotwords(["Zoo"])


def write(folder: Path, **files: str) -> CheckpointFolder:
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    return CheckpointFolder(folder)


def test_what_is_no_language_model_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="no file or folder"):
        NgramModel.from_path(tmp_path / "none.arpa")
    with pytest.raises(NotFoundError, match=r"0 files that end in .arpa, .bin, .binary, expected one"):
        NgramModel.from_path(tmp_path)
    write(tmp_path, a_arpa="", attrs_json='{"alpa": 1.0}', words_txt="")
    with pytest.raises(InputError, match=r"words.txt'?, expected a file that ends in .arpa"):
        NgramModel.from_path(tmp_path / "words.txt")
    with pytest.raises(CheckpointError, match="'alpa' is not a field of a language model; did you mean 'alpha'"):
        NgramModel.from_path(tmp_path)
    write(tmp_path, b_bin="")
    with pytest.raises(NotFoundError, match="2 files"):
        NgramModel.from_path(tmp_path)
    for name, value in (("alpha", "1"), ("beta", float("nan")), ("unk_score_offset", None), ("score_boundary", 1)):
        with pytest.raises(InputError, match=f"{name} of a language model is"):
            NgramModel(ArpaModel(GOLDEN["arpa"]), State, **{name: value})


def test_kenlm_scores_as_its_twin_does(tmp_path):
    pytest.importorskip("kenlm", reason="needs kenlm, which a compiler builds: the extra ngrams")
    files = {"words_arpa": GOLDEN["arpa"], "unigrams_txt": "\n".join(GOLDEN["words"]), "attrs_json": '{"alpha": 0.7}'}
    ours = NgramModel.from_folder(write(tmp_path, **files))
    twin = NgramModel(ArpaModel(GOLDEN["arpa"]), State, sorted(GOLDEN["words"]), alpha=0.7)
    for text in ("A BAD CAB", "BED X DAB ACE", "", "FADE FADE"):
        a, b = ours.start(), twin.start()
        for word in text.split():
            (x, a), (y, b) = ours.score(a, word), twin.score(b, word)
            assert x == pytest.approx(y, abs=1e-5)
        assert ours.score_end(a) == pytest.approx(twin.score_end(b), abs=1e-5)
    for part in ("A", "BE", "X", "FADEFADEFADE"):
        assert ours.score_part(part) == twin.score_part(part)
    (tmp_path / "words.arpa").write_text("no model")
    with pytest.raises(CheckpointError, match="is not a language model that kenlm reads"):
        NgramModel.from_path(tmp_path / "words.arpa")
