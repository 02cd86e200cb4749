"""The exported page in headless Chromium, with no other address within reach, against the same task on NumPy."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.web import browser as shared
from tests.web.pictures import IMAGENET, picture
from zoo.apps.cli import main
from zoo.errors import UnsupportedError
from zoo.models import bert, table_transformer, vit

pytest.importorskip("onnx", reason="needs onnx, which writes the graph")
pytestmark = pytest.mark.slow

DATA = Path(__file__).parent.parent / "data"
TEXTS = [
    "The cat sits outside.",
    "A cat is in the garden.",
    "Zürich, Ωmega ΣΑΣ, 東京 and 😀 in one line",
    "",
    "long " * 300,
]
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
BACKBONE = {"layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 1, 1]}
LABELS = (
    *("table", "table column", "table row", "table column header", "table projected row header"),
    "table spanning cell",
)
DETECTOR = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_queries": 30,
    "use_timm_backbone": False,
    "backbone_config": {"model_type": "resnet", **BACKBONE},
    "id2label": {str(i): label for i, label in enumerate(LABELS)},
}
DETR = {**IMAGENET, "image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 100, "longest_edge": 160}}


def checkpoint(folder: Path, model: Any, processor: Any = None) -> Any:
    """The task of a model that is saved with BERT's tokenizer, or with a processor."""
    zoo.save(model, folder)
    if processor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    else:
        (folder / "vocab.txt").write_bytes(
            lzma.decompress((DATA / "tokenizers" / "bert-base-uncased.vocab.txt.xz").read_bytes())
        )
        about = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 64}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return zoo.load(folder)


# JavaScript that gives a picture as zoo.js has it.
OPEN = """
const blob = await (await fetch(argument)).blob();
const image = await zoo.openImage(blob);
"""


@pytest.fixture(scope="module")
def sentences(minilm, libraries, tmp_path_factory) -> tuple[Any, Path]:
    """The real MiniLM, and its page."""
    task = zoo.load(minilm)
    return task, zoo.export(task, tmp_path_factory.mktemp("minilm"), web=True)


@pytest.mark.filterwarnings("ignore:.*cut there")
def test_vectors_equal_numpys(sentences, tab):
    task, folder = sentences
    page = tab(folder)
    page.page.goto(page.address)
    found = np.array(page.model("return (await model.embed(argument)).map((v) => Array.from(v));", TEXTS))
    np.testing.assert_allclose(found, task(TEXTS), atol=1e-5)
    assert not page.strays


def test_neighbours_are_shown_nearest_first(sentences, tab):
    task, folder = sentences
    page = tab(folder).open()
    query, lines = page.page.input_value("#query"), page.page.input_value("#sentences").split("\n")
    cosines = task.similarity(query, lines)[0]
    shown = page.page.locator("#neighbours li").all()
    assert [row.locator("span").first.inner_text() for row in shown] == [lines[i] for i in np.argsort(-cosines)]
    scores = [float(row.locator(".score").inner_text()) for row in shown]
    np.testing.assert_allclose(scores, np.sort(cosines)[::-1], atol=6e-4)
    assert "WebAssembly, 1 thread" in page.text("status")
    page.page.fill("#query", "The market crashed.")
    page.page.wait_for_selector("#neighbours li:first-child span:text('Stocks fell sharply on Monday.')")
    assert (page.strays, page.problems) == ([], [])


@pytest.mark.nightly
def test_int8_runs_too(minilm, libraries, tab, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, by which int8 sees what stands out")
    task = zoo.load(minilm)
    page = tab(zoo.export(task, tmp_path, precision="int8", web=True)).open()
    assert page.page.is_hidden("#error"), page.text("error")
    found = np.array(page.model("return (await model.embed(argument)).map((v) => Array.from(v));", TEXTS[:3]))
    assert (np.sum(found * task(TEXTS[:3]), axis=1) > 0.99).all()


def test_a_page_opened_as_a_file_says_what_to_do(sentences, browser):
    page = browser.new_page()
    page.goto((sentences[1] / "index.html").as_uri())
    page.wait_for_selector("#error:not([hidden])")
    assert "python -m http.server" in page.inner_text("#error")
    page.close()


@pytest.mark.nightly
def test_labels_equal_numpys(labels, tab):
    task, folder = labels
    page = tab(folder).open()
    assert_labels(page, task)
    assert page.page.locator("#answers li").count() == 3
    assert (page.strays, page.problems) == ([], [])


@pytest.mark.nightly
def test_words_for_masks_equal_numpys(libraries, tab, tmp_path):
    config = bert.BertConfig(**TINY, vocab_size=30522)
    task = checkpoint(tmp_path, bert.BertForMaskedLM.from_config(config, seed=1))
    page = tab(zoo.export(task, tmp_path / "export", web=True)).open()
    assert page.page.is_hidden("#error"), page.text("error")
    text = "Paris is the [MASK] of [MASK]."
    found, wanted = page.model("return model.fillMask(argument, 5);", text), task(text, top_k=5)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [one["token"] for one in ours] == [one.token for one in theirs]
        np.testing.assert_allclose([one["score"] for one in ours], [one.score for one in theirs], rtol=1e-4)
    page.page.fill("#input", "no mask")
    page.page.wait_for_selector("#error:not([hidden])")
    assert "write [MASK] where a word is wanted" in page.text("error")


@pytest.fixture(scope="module")
def detector(libraries, tmp_path_factory) -> tuple[Any, Path]:
    """A random detector of a table's parts, its scores far apart, and its page."""
    from zoo.weights import Random, RawTensor

    class Weights(Random):
        def make(self, name, shape):
            stored = super().make(name, shape)
            if name.endswith("running_var"):
                return RawTensor(abs(stored.array) + 0.5, "F32")
            far = name.endswith(("classifier.weight", "ings.weight"))
            return RawTensor(stored.array * 8, "F32") if far else stored

    folder = tmp_path_factory.mktemp("detector")
    config = table_transformer.TableTransformerConfig.from_dict(DETECTOR)
    task = checkpoint(folder, table_transformer.TableTransformerForObjectDetection.from_source(Weights(), config), DETR)
    return task, zoo.export(task, folder / "export", web=True)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_objects_equal_numpys(detector, tab, rng, mode):
    task, folder = detector
    path = folder / f"{mode}.png"
    picture(rng, 150, 211).convert(mode).save(path)
    page = tab(folder)
    page.page.goto(page.address)
    wanted = task(path, threshold=0.3)
    assert len(wanted) > 5
    found = page.model(f"{OPEN} return model.detect(image, 0.3);", path.name)
    assert [one["label"] for one in found] == [one.label for one in wanted]
    np.testing.assert_allclose([one["score"] for one in found], [one.score for one in wanted], atol=1e-4)
    np.testing.assert_allclose([one["box"] for one in found], [one.box for one in wanted], atol=1e-4 * 211)


def test_a_picture_is_shown_with_its_objects(detector, tab, rng, tmp_path):
    task, folder = detector
    picture(rng, 150, 211).save(tmp_path / "table.png")
    page = tab(folder).open()
    page.page.set_input_files("#file", tmp_path / "table.png")
    page.page.wait_for_selector("#found:not(:empty)")
    page.wait()
    objects = task(tmp_path / "table.png")
    assert page.text("found") == f"{len(objects)} found"
    assert page.page.locator("#overlay rect").count() == page.page.locator("#labels li").count() == len(objects) > 5
    headers = sum(one.label == "table column header" for one in objects)
    assert page.page.locator("#overlay rect.header").count() == headers
    assert "zoo table page.png" in page.text("cells")
    (tmp_path / "words.png").write_text("no picture")
    page.page.set_input_files("#file", tmp_path / "words.png")
    page.page.wait_for_selector("#error:not([hidden])")
    assert "words.png is not an image" in page.text("error")
    assert (page.strays, page.problems) == ([], [])


def test_the_drawn_example_needs_no_file(detector, tab):
    page = tab(detector[1]).open()
    page.page.focus("#example")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#found:not(:empty)")
    assert page.page.is_hidden("#error")


def test_image_labels_equal_numpys(libraries, tab, tmp_path, rng):
    config = vit.ViTConfig(**TINY, image_size=32, patch_size=8, id2label={i: str(i) for i in range(4)})
    raw = {"image_processor_type": "ViTImageProcessor", "size": 32}
    task = checkpoint(tmp_path, vit.ViTForImageClassification.from_config(config, seed=1), raw)
    folder = zoo.export(task, tmp_path / "export", web=True)
    picture(rng, 50, 70).save(folder / "cat.png")
    page = tab(folder).open()
    found = page.model(f"{OPEN} return model.classifyImage(image);", "cat.png")
    wanted = task(folder / "cat.png", top_k=None)
    assert [one["label"] for one in found] == [one.label for one in wanted]
    np.testing.assert_allclose([one["score"] for one in found], [one.score for one in wanted], atol=1e-5)


def assert_labels(page: shared.Tab, task: Any, text: str = "What a day!") -> None:
    assert page.page.is_hidden("#error"), page.text("error")
    found = page.model("return model.classify(argument);", text, backend=page.page.input_value("#backend"))
    wanted = task(text)
    assert [one["label"] for one in found] == [one.label for one in wanted]
    np.testing.assert_allclose([one["score"] for one in found], [one.score for one in wanted], atol=1e-4)


@pytest.fixture(scope="module")
def labels(libraries, tmp_path_factory) -> tuple[Any, Path]:
    """A random classifier of texts, and its page."""
    folder = tmp_path_factory.mktemp("labels")
    config = bert.BertConfig(**TINY, vocab_size=30522, id2label={i: f"label {i}" for i in range(3)})
    task = checkpoint(folder, bert.BertForSequenceClassification.from_config(config, seed=1))
    return task, zoo.export(task, folder / "export", web=True)


@pytest.mark.nightly
def test_threads_where_the_server_lets_them_share_memory(labels, tab):
    task, folder = labels
    page = tab(folder, isolated=True)
    page.page.add_init_script("Object.defineProperty(navigator, 'hardwareConcurrency', { value: 4 });")
    page.open()
    assert "WebAssembly, 2 threads" in page.text("status")
    assert_labels(page, task)


@pytest.mark.nightly
def test_webgpu_gives_the_same(labels, tab):
    task, folder = labels
    page = tab(folder)
    page.page.goto(page.address)
    if not page.page.evaluate("async () => Boolean(await navigator.gpu?.requestAdapter())"):
        pytest.skip("needs a Chromium with WebGPU, in software at least")
    page.open("?backend=webgpu")
    assert page.text("status").startswith("WebGPU · ")
    assert_labels(page, task)
    page.open("?backend=auto")  # an adapter in software is slower than WebAssembly
    assert page.text("status").startswith("WebAssembly, 1 thread · ")


def test_what_is_wrong_is_said_on_the_page(sentences, tab, tmp_path):
    _, folder = sentences
    for name in ("index.html", "web"):
        (tmp_path / name).symlink_to(folder / name)
    page = tab(tmp_path).open()
    assert "model.onnx is not there: the server answers 404" in page.text("error")
    page = tab(folder).open("?backend=quantum")
    assert "backend is “quantum”, expected auto, wasm or webgpu" in page.text("error")
    page = tab(folder)
    page.page.add_init_script("WebAssembly.validate = () => false;")
    assert "no WebAssembly SIMD" in page.open().text("error")
    page = tab(folder)
    page.page.add_init_script("Object.defineProperty(navigator, 'gpu', { value: undefined });")
    assert "no WebGPU adapter" in page.open("?backend=webgpu").text("error")


def test_what_has_no_page_is_refused_before_anything_is_written(tmp_path):
    config = bert.BertConfig(**TINY, vocab_size=30522, id2label={i: str(i) for i in range(3)})
    task = checkpoint(tmp_path / "checkpoint", bert.BertForTokenClassification.from_config(config))
    with pytest.raises(UnsupportedError, match="--web has no page for the task 'tag'"):
        zoo.export(task, tmp_path / "export", web=True)
    with pytest.raises(UnsupportedError, match=r"BertForTokenClassification.* has no task"):
        zoo.export(task.model, tmp_path / "export", web=True)
    assert not (tmp_path / "export").exists()


def test_an_export_without_a_page_takes_an_older_one_out_of_use(labels, tab, tmp_path):
    task, folder = labels
    shutil.copytree(folder, tmp_path / "export")
    zoo.export(task, tmp_path / "export")
    assert "page.json is not there" in tab(tmp_path / "export").open().text("error")


def test_the_command_says_how_to_serve_the_page(labels, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    folder = labels[0].checkpoint.folder
    assert main(["export", str(folder), str(tmp_path / "page"), "--web"]) == 0
    out = capsys.readouterr().out
    assert f"python -m http.server -d {tmp_path / 'page'}" in out
    assert "index.html" in out
    assert main(["export", str(folder), str(tmp_path / "page"), "--web", "--web-libraries", str(tmp_path)]) == 1
    assert "onnxruntime-web-1.30.0.tgz: No such file or directory; `npm pack" in capsys.readouterr().err
