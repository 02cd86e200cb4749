"""`zoo embed`: the same vectors as the task's, in each format and precision."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.apps.cli import embed as command
from zoo.apps.cli import main
from zoo.tasks.vectors import quantise

TEXTS = ["a cat", "the sea and the sky", "", "東京", *(f"text {i}" for i in range(9))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from parity.checkpoints import build

    return build("all-mpnet-base-v2", tmp_path_factory.mktemp("checkpoint"))


class Lines:
    """A stdin of lines."""

    def __init__(self, path, lines):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self.file = path.open()

    def fileno(self):
        return self.file.fileno()

    def isatty(self):
        return False


@pytest.fixture
def run(folder, tmp_path, monkeypatch):
    def run(output, *options, lines=TEXTS):
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", Lines(tmp_path / "lines.txt", lines))
            patch.setattr(command, "BLOCK", 4)  # so that there are several
            return main(["embed", str(folder), "-", "-o", str(tmp_path / output), *options])

    return run


@pytest.mark.filterwarnings("ignore:.*ranges of")
@pytest.mark.parametrize("precision", ["float32", "int8", "ubinary"])
def test_each_format(run, folder, tmp_path, precision):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow, which writes Parquet")
    wanted = quantise(zoo.load(folder)(TEXTS), precision)
    for name in ("x.npy", "x.safetensors", "x.parquet"):
        assert run(name, "--precision", precision) == 0
    found = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    tensors = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(tensors["embeddings"], wanted)
    assert ("ranges" in tensors) == (precision == "int8")
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table["text"].to_pylist() == TEXTS
    np.testing.assert_array_equal(np.stack(table["embedding"].to_numpy()), wanted)


@pytest.fixture
def embed_until(folder, tmp_path, monkeypatch):
    """A function that runs the command with texts, with which the user stops it after some."""

    def run(texts, *options, stop=None):
        counts = []

        def blocks():
            yield 1, texts[:stop]
            if stop is not None:
                raise KeyboardInterrupt

        task = type(zoo.load(folder))
        computing = task.computing

        def counting(self, *args, **more):
            compute = computing(self, *args, **more)
            return lambda some: counts.append(len(some)) or compute(some)

        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO())
            patch.setattr(command, "stdin_blocks", blocks)
            patch.setattr("zoo.tasks.base.TEXTS_AT_ONCE", 2)
            patch.setattr(task, "computing", counting)
            return main(["embed", str(folder), "-", "-o", str(tmp_path / "x.npy"), *options]), sum(counts)

    return run


def test_a_job_that_was_stopped_goes_on(embed_until, folder, tmp_path, capsys):
    wanted = zoo.load(folder)(TEXTS)
    assert embed_until(TEXTS, stop=7) == (130, 6)
    assert "the same command with --resume keeps what is done" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy.parts"]
    assert embed_until(TEXTS, "--resume", stop=11) == (130, 4)
    assert embed_until(TEXTS, "--resume", "--precision", "float32") == (0, 3)
    assert "13 vectors of 48 dimensions, float32, 10 of them from before" in capsys.readouterr().err
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), wanted, rtol=1e-5, atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(
    ("texts", "options", "count"),
    [
        ([*TEXTS[:3], "new", *TEXTS[4:]], ["--resume"], 10),  # from the first one that is another
        (TEXTS[:4], ["--resume"], 0),
        (TEXTS, ["--resume", "--truncate-dim", "3"], 13),
        (TEXTS, [], 13),
    ],
)
def test_only_the_same_vectors_are_kept(embed_until, folder, tmp_path, texts, options, count):
    assert embed_until(TEXTS, stop=7) == (130, 6)
    assert embed_until(texts, *options) == (0, count)
    wanted = zoo.load(folder)(texts, truncate_dim=3 if "--truncate-dim" in options else None)
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), wanted, rtol=1e-5, atol=1e-6)


def test_damaged_parts_are_computed_again(embed_until, folder, tmp_path):
    for damage in ("vectors", "inputs", "state.json"):
        assert embed_until(TEXTS, stop=7) == (130, 6)
        path = tmp_path / "x.npy.parts" / damage
        path.write_bytes(path.read_bytes()[:9])
        assert embed_until(TEXTS, "--resume")[0] == 0
        np.testing.assert_allclose(np.load(tmp_path / "x.npy"), zoo.load(folder)(TEXTS), rtol=1e-5, atol=1e-6)


def test_a_changed_picture_is_embedded_anew(tmp_path, monkeypatch):
    from PIL import Image

    from parity.checkpoints import build

    folder = build("vit-base-patch16-224", tmp_path / "vit")
    paths = [str(tmp_path / f"{i}.png") for i in range(4)]
    for path in paths:
        Image.effect_noise((30, 20), 50).save(path)
    Path(paths[2]).write_bytes(b"no picture")
    monkeypatch.setattr(command, "IMAGES", 1)
    out = str(tmp_path / "x.npy")
    assert main(["embed", str(folder), *paths, "-o", out]) == 1
    for i in (1, 2):
        Image.effect_noise((30, 20), 20).save(paths[i])
    assert main(["embed", str(folder), *paths, "-o", out, "--resume"]) == 0
    np.testing.assert_allclose(np.load(out), zoo.load(folder, task="embed")(paths), rtol=1e-5, atol=1e-6)


def test_options(run, folder, tmp_path):
    assert run("x.npy", "--as", "query", "--truncate-dim", "3", "--normalize") == 0
    wanted = zoo.load(folder).encode_query(TEXTS, truncate_dim=3, normalize_embeddings=True)
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("output", "options", "lines", "match"),
    [
        ("x.npz", (), TEXTS, r"expected a name that ends in \.npy, \.parquet, \.safetensors"),
        ("x.npy", (), [], "there is nothing to embed"),
        ("x.npy", ("--precision", "int8"), ["one"], "needs at least two vectors"),
        ("none/x.npy", (), TEXTS, "cannot write"),
        ("x.npy", ("--truncate-dim", "9999"), TEXTS, "truncate_dim is 9999"),
        ("x.npy", ("--prompt-name", "query"), TEXTS, "prompt_name is 'query'"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(run, tmp_path, capsys, output, options, lines, match):
    import re

    try:
        status = run(output, *options, lines=lines)
    except SystemExit as e:
        status = e.code
    assert status
    assert re.search(match, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["lines.txt"]


def test_pictures(tmp_path, capsys):
    from PIL import Image

    from parity.checkpoints import build

    folder = build("vit-base-patch16-224", tmp_path / "vit")
    for name in "ab":
        Image.effect_noise((30, 20), 50).save(tmp_path / f"{name}.png")
    paths = [str(tmp_path / f"{name}.png") for name in "ab"]
    out = str(tmp_path / "x.npy")
    assert main(["embed", str(folder), *paths, "-o", out, "--truncate-dim", "5"]) == 0
    wanted = zoo.load(folder, task="embed")(paths)[:, :5]
    np.testing.assert_allclose(np.load(out), wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(SystemExit):
        main(["embed", str(folder), *paths, "-o", out, "--prompt", "a"])
    assert "--prompt is for texts" in capsys.readouterr().err


def test_pictures_and_words_of_one_model(tmp_path, capsys):
    from PIL import Image

    from parity.checkpoints import build

    folder, picture, out = build("clip-vit-base-patch32", tmp_path / "clip"), tmp_path / "a.png", tmp_path / "x.npy"
    Image.effect_noise((30, 20), 50).save(picture)
    assert main(["embed", str(folder), str(picture), "a cat", "-o", str(out)]) == 0
    embed = zoo.load(folder, task="embed")
    np.testing.assert_allclose(np.load(out), [embed(str(picture)), embed.texts("a cat")], rtol=1e-5, atol=1e-6)
    assert "2 vectors of" in capsys.readouterr().err
    assert main(["embed", str(folder), "a cat", "-o", str(out)]) == 0
    assert "1 vector of" in capsys.readouterr().err


def test_texts_from_the_command_line(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["embed", str(folder), "a cat", "-o", str(tmp_path / "x.npy")]) == 0
    assert np.load(tmp_path / "x.npy").shape[0] == 1
