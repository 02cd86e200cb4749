"""Grounding DINO: phrases and objects as transformers' processor gives them, files that it writes, what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images.phrases import post_process_phrases
from zoo.models.grounding_dino import GroundingDinoConfig
from zoo.models.grounding_dino.encoder import find_phrases
from zoo.models.mm_grounding_dino import MMGroundingDinoConfig
from zoo.tasks.phrase_detect import prompt_of, tokens_of

NAMES = {"grounding-dino": "grounding-dino-tiny", "mm-grounding-dino": "mm-grounding-dino-tiny"}
LABELS = ["a cat", "Some water", "the old town by the river"]
SIZES = ((40, 60), (75, 30), (33, 33))
IDS = np.array([[101, 5, 6, 1012, 7, 8, 9, 1029, 102], [101, 5, 7, 7, 1012, 6, 102, 0, 0]])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: build(spec, tmp_path_factory.mktemp("grounding") / name) for name, spec in NAMES.items()}


@pytest.fixture(scope="module")
def theirs(folders):
    """`theirs(name)`: transformers' model and processor."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")

    def load(name):
        model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(folders[name])
        images = transformers.AutoImageProcessor.from_pretrained(folders[name], backend="pil")
        return model, transformers.GroundingDinoProcessor(
            images, transformers.AutoTokenizer.from_pretrained(folders[name])
        )

    return load


@pytest.mark.parametrize("name", NAMES)
def test_objects_are_those_of_transformers_processor(folders, theirs, name):
    import torch

    images = [draw(*size, seed=i) for i, size in enumerate(SIZES)]
    model, processor = theirs(name)
    detector = zoo.load(folders[name])
    for image in images:  # one by one, as zoo computes images of several sizes
        given = processor(images=image, text=[LABELS], return_tensors="pt")
        with torch.no_grad():
            output = model(**given)
        scores = np.sort(output.logits.sigmoid().amax(-1).numpy()[0])
        for kept, share in ((20, 0.8), (5, 1.0), (2, 0.0)):
            threshold = float(scores[-kept - 1 : -kept + 1 or None].mean())  # between the scores of two queries
            text_threshold = threshold * share
            size = [(image.height, image.width)]
            (wanted,) = processor.post_process_grounded_object_detection(
                output, threshold=threshold, text_threshold=text_threshold, target_sizes=size
            )
            found = detector(image, LABELS, threshold=threshold, text_threshold=text_threshold)
            order = np.argsort(-wanted["scores"].numpy(), kind="stable")
            assert len(found) == len(order) == kept
            np.testing.assert_allclose([one.score for one in found], wanted["scores"].numpy()[order], atol=1e-4)
            boxes = wanted["boxes"].numpy()[order]
            np.testing.assert_allclose([one.box for one in found], boxes, atol=2e-3)
            assert sorted(one.label for one in found) == sorted(wanted["text_labels"])
            named = detector(image, LABELS, threshold=threshold)
            assert [one.box for one in named] == [one.box for one in found]
            assert {one.label for one in named} <= set(LABELS)


def test_a_text_is_read_as_transformers_processor_makes_it_of_labels(folders, theirs):
    _, processor = theirs("grounding-dino")
    detector: Any = zoo.load(folders["grounding-dino"])
    wanted = processor(images=draw(40, 60), text=[LABELS], return_tensors="np")["input_ids"][0]
    np.testing.assert_array_equal(prompt_of(LABELS, detector.tokenizer, 64), wanted)
    image = draw(40, 60)
    whole = detector(image, "a cat. some water.", threshold=0.6)
    assert (
        whole
        == detector(image, "a cat,some water", threshold=0.6)
        == detector(image, ["a cat", "some water"], threshold=0.6)
    )
    assert len(detector([image, image, draw(75, 30)], LABELS)) == 3


def test_an_export_finds_the_same_objects(folders, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
    folder = zoo.export(folders["grounding-dino"], tmp_path / "export")
    figures = json.loads((folder / "parity.json").read_text())["outputs"]
    assert all(of["relative_l2"] <= 1e-5 for of in figures.values())  # logits of -inf are no numbers to compare
    images = [draw(40, 60), draw(40, 60, seed=1)]
    ours, wanted = (
        zoo.load(one, device=device)(images, LABELS, threshold=0.6)
        for one, device in ((folder, "onnx"), (folders["grounding-dino"], "cpu"))
    )
    for a, b in zip(ours, wanted, strict=True):
        assert [one.label for one in a] == [one.label for one in b]
        np.testing.assert_allclose([one.box for one in a], [one.box for one in b], atol=1e-2)


def test_phrases_are_those_of_transformers():
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    module = pytest.importorskip(
        "transformers.models.grounding_dino.modeling_grounding_dino", reason="needs transformers, the reference"
    )
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 8, 20):
        ids = rng.choice([101, 102, 1012, 1029, 0, 7, 8, 9, 10], (30, length))
        special = torch.tensor(module.SPECIAL_TOKENS)
        mask, at = module.generate_masks_with_special_tokens_and_transfer_map(torch.tensor(ids), special)
        number, position = find_phrases(ids)
        np.testing.assert_array_equal(number[:, :, None] == number[:, None], mask.numpy())
        np.testing.assert_array_equal(position, at.numpy())


@pytest.mark.parametrize("in_memory", [False, True])
def test_files_that_transformers_writes_and_its_names_in_memory(in_memory, theirs, tmp_path):
    import torch
    from safetensors.torch import save_file

    model, _ = theirs("mm-grounding-dino")
    torch.manual_seed(0)
    model.config.num_feature_levels = 5
    model = type(model)(model.config).eval()
    model.save_pretrained(tmp_path)
    if in_memory:
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    pixels = np.random.default_rng(0).standard_normal((2, 70, 100, 3)).astype(np.float32)
    mask = np.ones((2, 70, 100), np.int64)
    mask[1, 50:] = mask[1, :, 60:] = 0
    given = {"pixel_mask": mask, "attention_mask": (IDS > 0) * 1, "token_type_ids": (IDS == 7) * 1}
    with torch.no_grad():
        images = torch.tensor(pixels).permute(0, 3, 1, 2)
        wanted = model(images, torch.tensor(IDS), **{name: torch.tensor(x) for name, x in given.items()})
    for device in ("cpu", "torch:cpu"):
        found = zoo.load_model(tmp_path, device=device, strict=True)(IDS, pixels, **given)
        for name in ("logits", "pred_boxes", "encoder_last_hidden_state_text"):
            np.testing.assert_allclose(np.asarray(getattr(found, name)), wanted[name].numpy(), atol=1e-3)


def test_a_place_is_named_by_its_best_token_and_scored_by_any():
    logits = np.full((1, 2, 5), -np.inf, np.float32)
    logits[0, 0, :4], logits[0, 1, :4] = [3, 0, 1, -1], [-9, -1, -9, 2]
    boxes, tokens = np.full((1, 2, 4), 0.5, np.float32), [np.array([1]), np.array([2, 3])]
    given = logits, boxes, [(10, 20)], ["a", "b"], tokens
    ((first, second),) = post_process_phrases(*given, threshold=0.5)
    assert (first.label, second.label) == ("b", "b")
    assert first.score == pytest.approx(1 / (1 + np.exp(-3)))
    assert first.box == (5, 2.5, 15, 7.5)
    ((first, second),) = post_process_phrases(*given, text_threshold=0.4, decode=lambda places: str(places.tolist()))
    assert (first.label, second.label) == ("[1, 2]", "[3]")
    boxes[0, 1, 2] = np.nan
    with pytest.raises(InputError, match="query 1 have nan"):
        post_process_phrases(*given)


def test_labels_that_are_refused(folders):
    detector, image = zoo.load(folders["grounding-dino"]), draw(40, 60)
    for labels, message in (
        (["a cat", "a dog."], r"candidate_labels has 'a dog\.': a label ends at '\.'"),
        (["a cat?"], r"a label ends at '\?'"),
        (["a cat", "a cat"], "candidate_labels have 'a cat' twice"),
        (["the old town by the river"] * 1 + [f"{i} of the old towns by the river" for i in range(20)], "reads 64"),
        (["\u200b"], "the tokenizer makes no token"),
        ([], "candidate_labels is empty"),
    ):
        with pytest.raises(InputError, match=message):
            detector(image, labels)
    with pytest.raises(InputError, match="are 1, but the tokenizer makes 0 phrases of them"):
        tokens_of(["a"], np.array([3, 7, 8, 4]), (101, 102, 1012, 1029))
    with pytest.raises(InputError, match=r"text_threshold is 1\.5"):
        detector(image, "a cat", text_threshold=1.5)
    model = zoo.load_model(folders["grounding-dino"])
    with pytest.raises(InputError, match="1 texts for 2 images"):
        model(IDS[:1], np.zeros((2, 64, 64, 3), np.float32))
    with pytest.raises(InputError, match="70 tokens, but the checkpoint has positions for 64"):
        model(np.ones((1, 70), int), np.zeros((1, 64, 64, 3), np.float32))
    with pytest.raises(InputError, match="too few for num_queries = 25"):
        model(IDS[:1], np.zeros((1, 16, 16, 3), np.float32))


def test_configs_that_are_refused():
    for given, kind, message in (
        ({"two_stage": False}, UnsupportedError, "two_stage = False"),
        ({"embedding_init_target": False}, UnsupportedError, "embedding_init_target = False"),
        ({"backbone_config": {"model_type": "resnet"}}, UnsupportedError, "backbone_config: model_type = 'resnet'"),
        ({"text_config": {"model_type": "roberta"}}, UnsupportedError, "text_config: .*model_type = 'roberta'"),
        ({"text_config": {"is_decoder": True}}, UnsupportedError, "text_config: .*is_decoder"),
        ({"encoder_attention_heads": 1}, ConfigError, "encoder_attention_heads = 1"),
        ({"num_feature_levels": 2}, ConfigError, "num_feature_levels = 2"),
        ({"d_model": 48}, ConfigError, "multiple of 32"),
        ({"position_embedding_type": "sines"}, UnsupportedError, "did you mean 'sine'"),
    ):
        with pytest.raises(kind, match=message):
            GroundingDinoConfig.from_dict(given)
    assert MMGroundingDinoConfig.from_dict({}).swin.outputs == (2, 3, 4)
