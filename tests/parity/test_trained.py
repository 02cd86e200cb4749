"""`python -m parity.trained`: its figures are right, and material that is missing or changed is told."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.trained.__main__ import PACKAGES, ROWS, main
from parity.trained.ctranslate2_files import FORMAT_VERSION, read_tensors
from parity.trained.material import Part, PublicFile, join_parts, read_part, read_public
from parity.trained.measures import ndcg_at_10, word_error_rate
from parity.trained.outcome import Outcome
from parity.trained.retrieval import read_cranfield
from zoo.errors import CheckpointError, NotFoundError


def test_word_errors_are_edits_over_words():
    assert word_error_rate(["Hello, World!"], ["hello world"]) == 0
    # One word replaced, one left out, one inserted, of 3 + 2.
    assert word_error_rate(["a x", "d e f"], ["a b c", "d e"]) == 3 / 5


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


def test_rows_without_their_material_are_skipped_by_name(tmp_path, capsys):
    report = tmp_path / "trained.json"
    assert main([str(tmp_path), "--rows", "gemma", "whisper", "--json", str(report)]) == 0
    said = capsys.readouterr().out
    assert f"gemma-3-270m-q4_k_m.gguf.part00 of the package {PACKAGES[0]}" in said
    assert set(json.loads(report.read_text())["skipped"]) == {ROWS["gemma"][0], ROWS["whisper"][0]}
    assert main(["--packages"]) == 0
    assert capsys.readouterr().out.split() == PACKAGES


@pytest.mark.nightly
def test_the_llama_that_comes_with_zoo_writes_what_transformers_writes(tmp_path, capsys):
    assert main([str(tmp_path), "--rows", "stories", "--markdown", str(tmp_path / "table.md")]) == 0
    assert "zoo 160, transformers 160" in capsys.readouterr().out
    assert "| stories260k | perplexity, 122 tokens | 2.51" in (tmp_path / "table.md").read_text()
