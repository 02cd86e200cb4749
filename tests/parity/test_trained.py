"""`python -m parity.trained`: its figures are right, and material that is missing or changed is told."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.trained import chat, material, sampled, speech
from parity.trained.__main__ import PACKAGES, ROWS, main
from parity.trained.ctranslate2_files import FORMAT_VERSION, read_tensors
from parity.trained.material import Part, PublicFile, join_parts, read_part, read_public
from parity.trained.measures import ndcg_at_10, word_error_rate, words_of
from parity.trained.outcome import RATE_LIMIT, Missing, Outcome
from parity.trained.recordings import Recording, mix, read_recordings
from parity.trained.retrieval import bits_alike, read_cranfield, unpack_checkpoint
from parity.trained.speech import Segment
from zoo.errors import CheckpointError, InputError, NotFoundError
from zoo.generate import GenerationConfig
from zoo.generate.sampling import sample
from zoo.text.template import render


def test_word_errors_are_edits_over_words():
    assert word_error_rate(["Hello, World!"], ["hello world"]) == 0
    # One word replaced, one left out, one inserted, of 3 + 2.
    assert word_error_rate(["a x", "d e f"], ["a b c", "d e"]) == 3 / 5
    assert words_of("It\u2019s 東京です, ok") == ["it's", "東", "京", "で", "す", "ok"]


def test_ndcg_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn, the reference")
    rng = np.random.default_rng(0)
    gains, scores = rng.integers(0, 4, (6, 40)).astype(float), rng.random((6, 40))
    relevant = [{i: gain for i, gain in enumerate(row) if gain} for row in gains]
    assert ndcg_at_10(scores, relevant) == pytest.approx(metrics.ndcg_score(gains, scores, k=10))


def test_cranfield_is_read_by_place_and_grade():
    articles = ".I 1\n.T\nflow of\nair .\n.A\nx\n.B\n\n.W\nbody\n.I 2\n.T\nheat .\n.A\ny\n.W\nmore\n"
    queries = ".I 001\n.W\nwhat flows\n.I 004\n.W\nhow hot\n"
    found = read_cranfield(articles, queries.replace("\n", "\r\n"), "1 1 2 \n2 2 -1\n2 1 1\n")
    assert found == (["flow of air .", "heat ."], ["what flows", "how hot"], [{0: 3}, {0: 4}])


def test_the_same_bits_of_vectors_are_counted():
    a, b = np.array([[0b1010_0000, 255]]), np.array([[0b1010_0000, 255], [0b0101_1111, 0], [0b1010_0001, 254]])
    assert bits_alike(a, b).tolist() == [[16, 0, 14]]


def test_a_checkpoint_is_unpacked_without_other_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for name in ("a/config.json", "a/1_Pooling/config.json", "a/desktop.ini", "a/../../b.json", "a/x.safetensors"):
            file.writestr(name, name)
    (tmp_path / "to").mkdir()
    unpack_checkpoint(tmp_path / "a.zip", tmp_path / "to")
    found = {
        p.relative_to(tmp_path / "to").as_posix() for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".zip"
    }
    assert found == {"config.json", "1_Pooling/config.json", "x.safetensors"}


def test_tokens_are_drawn_by_transformers_probabilities():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((40, 300)).astype(np.float32) * 3
    for options in sampled.OPTIONS:
        config, draws = GenerationConfig(do_sample=True, **options), np.random.default_rng(1)
        tokens = [sample(row, config, draws.random()) for row in logits]
        chances = sampled.probabilities(logits, options)
        assert sampled.count_drawn(chances, tokens, np.random.default_rng(1)) == 40
        assert sampled.count_drawn(chances, tokens, np.random.default_rng(2)) < 40
        kept = (chances > 0).sum(-1)
        assert (kept < 300).all()
        assert kept.max() > 1


def test_the_chats_template_begins_with_what_the_system_says():
    given = {"messages": chat.CHATS[-1], "bos_token": "<bos>", "add_generation_prompt": True}
    text = render(chat.TEMPLATE, given, 1000).text
    first, *_, last = text.split("<start_of_turn>")[1:]
    assert text.startswith("<bos><start_of_turn>")
    assert first == "user\nAnswer briefly.\n\nWhat is the capital of France?<end_of_turn>\n"
    assert last == "model\n"


def package(folder: Path, name: str, data: bytes) -> Part:
    """A package of one file, installed into a folder."""
    module = name.replace("-", "_")
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir()
    (folder / module).mkdir()
    (folder / module / "data.bin").write_bytes(data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "RECORD").write_text(f"{module}/data.bin,sha256={digest},{len(data)}\n")
    return Part(name, f"{module}/data.bin")


def test_parts_of_packages_are_joined_and_changed_ones_refused(tmp_path):
    parts = [package(tmp_path, "weights-part1", b"abc"), package(tmp_path, "weights-part2", b"def")]
    assert join_parts(tmp_path, "whole", parts).read_bytes() == b"abcdef"
    with pytest.raises(NotFoundError, match="of the package weights-part3"):
        read_part(tmp_path, Part("weights-part3", "weights_part3/data.bin"))
    (tmp_path / "weights_part2" / "data.bin").write_bytes(b"dEf")
    with pytest.raises(CheckpointError, match=r"weights-part2 is not what its RECORD says"):
        join_parts(tmp_path, "again", parts)
    assert not (tmp_path / "again").exists()


def test_public_files_are_those_of_their_hash(tmp_path):
    file = PublicFile("a.txt", "owner/name", "0" * 40, "a.txt", hashlib.sha256(b"text").hexdigest())
    (tmp_path / "a.txt").write_bytes(b"text")
    assert read_public(tmp_path, file) == b"text"
    (tmp_path / "a.txt").write_bytes(b"other")
    with pytest.raises(CheckpointError, match=r"a.txt of owner/name has other bytes"):
        read_public(tmp_path, file)


def test_tensors_of_ctranslate2s_format_are_read():
    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    array = np.arange(6, dtype="<f2").reshape(2, 3)
    data = struct.pack("<I", FORMAT_VERSION) + text("WhisperSpec") + struct.pack("<II", 3, 1) + text("a/weight")
    data += struct.pack("<BIIBI", 2, 2, 3, 4, array.nbytes) + array.tobytes()
    ((name, found),) = read_tensors(data)
    assert name == "a/weight"
    np.testing.assert_array_equal(found, array)
    with pytest.raises(CheckpointError, match="version 5"):
        list(read_tensors(struct.pack("<I", 5) + data[4:]))


def test_a_figure_holds_to_a_thousandth_of_its_peers():
    assert Outcome("perplexity", 2.001, {"transformers": 2.0, "another": 3.0}).holds
    assert not Outcome("perplexity", 2.01, {"transformers": 2.0}).holds
    assert Outcome("word errors", 0.1009, {"transformers": 0.1}, limit=RATE_LIMIT).holds
    assert not Outcome("word errors", 0.1012, {"transformers": 0.1}, limit=RATE_LIMIT).holds


def test_rows_without_their_material_are_skipped_by_name(tmp_path, capsys):
    report = tmp_path / "trained.json"
    assert main([str(tmp_path), "--rows", "gemma", "whisper", "--json", str(report)]) == 3
    said = capsys.readouterr().out
    assert f"gemma-3-270m-q4_k_m.gguf.part00 of the package {PACKAGES[0]}" in said
    assert set(json.loads(report.read_text())["skipped"]) == {ROWS["gemma"][0], ROWS["whisper"][0]}
    assert main(["--packages"]) == 0
    assert capsys.readouterr().out.split() == PACKAGES


def test_a_row_with_other_bytes_fails_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    part = package(tmp_path, "weights-part1", b"abc")
    (tmp_path / "weights_part1" / "data.bin").write_bytes(b"abd")

    def broken(folder: Path) -> Iterator[Outcome | Missing]:
        yield Outcome("first", 1.0, {"transformers": 1.0})
        yield Missing("Dutch", NotFoundError("needs nl.flac"))
        join_parts(folder, "whole", [part])

    def other(_: Path) -> Iterator[Outcome | Missing]:
        yield Outcome("second", 1.0, {"transformers": 1.0})

    monkeypatch.setitem(ROWS, "gemma", ("Broken", broken))
    monkeypatch.setitem(ROWS, "stories", ("Other", other))
    assert main([str(tmp_path), "--rows", "gemma", "stories"]) == 2
    said = capsys.readouterr()
    assert [line.split(":")[0] for line in said.out.splitlines()] == ["Broken", "Broken", "Other"]
    assert "Broken: Dutch: skipped, needs nl.flac" in said.out
    assert said.err.startswith("Broken: failed, weights_part1/data.bin of weights-part1 is not what its RECORD says")


def test_recordings_name_their_files_hashes_texts_and_licences():
    sets = json.loads((Path(speech.__file__).parent / "recordings.json").read_text("utf-8"))
    for given in sets:
        assert len(given["commit"]) == 40
        assert given["licence"]
        for file in [file for files in given["recordings"] for file in files]:
            assert len(file["sha256"]) == 64
            assert bool(file["text"].strip()) == ("no speech" not in given["name"])
    assert {given["language"] for given in sets} == {"en", "de", "nl", "es", "fr", "it", "ja", "ko", "pt"}


def test_recordings_that_cannot_be_had_are_told_by_set(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(material, "urlopen", refuse)
    found = list(read_recordings(tmp_path))
    assert all(isinstance(one, Missing) and isinstance(one.error, NotFoundError) for one in found)
    assert "Dutch, read (rhasspy/dataset-voice-nathalie)" in [one.measure for one in found if isinstance(one, Missing)]


def test_a_recording_in_a_language_that_is_not_known_is_told():
    one, other = (Recording(name, code, np.zeros(3, np.float32), "a") for name, code in (("A", "de"), ("B", "dee")))
    found = list(speech.of_languages([one, other], {"en": 1, "de": 2}))
    assert found[0] is one
    assert isinstance(found[1], Missing)
    assert (found[1].measure, isinstance(found[1].error, InputError)) == ("B", True)
    assert str(found[1].error) == "its language is 'dee', and the checkpoint knows en, de; did you mean 'de'?"


def test_a_background_is_repeated_and_five_decibels_weaker():
    rng = np.random.default_rng(0)
    said, noise = rng.standard_normal(1000).astype(np.float32), rng.standard_normal(300).astype(np.float32) * 7
    behind = mix(said, noise) - said
    np.testing.assert_allclose(behind[:300], behind[300:600], atol=1e-5)
    assert 10 * np.log10(np.mean(said**2) / np.mean(behind**2)) == pytest.approx(5, abs=1e-3)


def test_segments_are_near_by_both_times():
    one, two, three = Segment(0, 2, "Hello there."), Segment(2, 4, "And now"), Segment(4, 5, "the end")
    others = [Segment(0.05, 2.09, "hello there"), Segment(2, 4.2, "and now!"), Segment(4, 5, "an end")]
    assert speech.count_near([([one, two, three], others)]) == (1, 2)


@pytest.mark.nightly
def test_the_llama_that_comes_with_zoo_writes_what_transformers_writes(tmp_path, capsys):
    assert main([str(tmp_path), "--rows", "stories", "--markdown", str(tmp_path / "table.md")]) == 0
    said = capsys.readouterr().out
    assert "zoo 160, transformers 160" in said
    assert "zoo 480, transformers 480" in said
    assert "| stories260k | perplexity, 122 tokens | 2.51" in (tmp_path / "table.md").read_text()
