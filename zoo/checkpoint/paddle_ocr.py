"""PaddleOCR's ONNX graphs of PP-OCRv6 small as checkpoints of transformers' classes.

The graphs are PaddlePaddle's own exports (https://github.com/PaddlePaddle/PaddleOCR, Apache-2.0).  Their convolutions
stand in the order of the modules of transformers' classes; most of their batch norms are folded into a bias that is
added after the convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError
from ..weights.onnx_file import GraphNode, OnnxFile

NORM_EPS = 1e-5  # the epsilon of transformers' batch norms
FIRST_CHARACTERS, LAST_CHARACTERS = ["blank"], [" "]  # outputs before and after those that the metadata lists
# (kernel, inputs, outputs, stride, squeezes) of each block of each stage, as in transformers' config.
READER_BLOCKS: list[Any] = [
    [[3, 96, 96, 1, True]],
    [[3, 96, 96, 1, False]] * 2,
    [[3, 96, 192, [2, 1], False], *([3, 192, 192, 1, i % 2 == 0] for i in range(6))],
    [[3, 192, 384, [2, 1], False], [3, 384, 384, 1, True], [3, 384, 384, 1, False]],
]
DETECTOR_BLOCKS: list[Any] = [
    [[3, 48, 48, 1, True], [3, 48, 48, 1, False]],
    [[3, 48, 96, 2, False], [3, 96, 96, 1, True], [3, 96, 96, 1, False]],
    [[3, 96, 192, 2, False], *([3, 192, 192, 1, i % 2 == 0] for i in range(4))],
    [[3, 192, 384, 2, False], [3, 384, 384, 1, True], [3, 384, 384, 1, False]],
]
_STEM = ("stem1", "stem2a", "stem2b", "stem3", "stem4")
_LAYERS = ("self_attn.qkv", "self_attn.projection", "mlp.fc1", "mlp.fc2")


class Converted(NamedTuple):
    """The contents of a checkpoint's files; preprocessor: of preprocessor_config.json."""

    config: dict[str, Any]
    preprocessor: dict[str, Any]
    tensors: dict[str, np.ndarray]


def convert_reader(file: OnnxFile, where: object) -> Converted:
    """The reader of lines; CheckpointError for another graph.  where: the file that messages name."""
    tensors = _convolutions(file, [*_backbone(READER_BLOCKS), *_reader_head()], where)
    names = [f"head.encoder.svtr_block.{i}.{name}" for i in (0, 1) for name in _LAYERS]
    for i, name in enumerate([*names, "head.head"]):
        tensors[f"{name}.weight"] = _constant(file, f"linear_{i}.w_0", where).T
        tensors[f"{name}.bias"] = _constant(file, f"linear_{i}.b_0", where)
    norms = [f"head.encoder.svtr_block.{i}.layer_norm{k}" for i in (0, 1) for k in (1, 2)]
    scales = list(_layer_norms(file))
    if len(scales) != len(norms) + 1:
        raise CheckpointError(f"{where}: has {len(scales)} layer norms, expected {len(norms) + 1} of PP-OCRv6 small")
    for name, (weight, bias) in zip([*norms, "head.encoder.norm"], scales, strict=True):
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = weight, bias
    characters = FIRST_CHARACTERS + file.metadata.get("character", "").split("\n") + LAST_CHARACTERS
    classes = len(tensors["head.head.bias"])
    if len(characters) != classes:
        raise CheckpointError(
            f"{where}: the metadata lists {len(characters) - 2} characters, expected {classes - 2} for the "
            f"{classes} outputs of its head, which has one for none and one for a space"
        )
    # The graph has 1e-5 in the layers and 1e-6 in the last norm, transformers one number for all of them: with the
    # first of the two its probabilities are nearer to the graph's.
    config = {"model_type": "pp_ocrv6_small_rec", "head_out_channels": classes, "layer_norm_eps": 1e-5}
    config["architectures"] = ["PPOCRV6SmallRecForTextRecognition"]
    config["backbone_config"] = {"model_type": "pp_lcnet_v4", "block_configs": READER_BLOCKS}
    preprocessor = {"image_processor_type": "PPOCRV6SmallRecImageProcessor", "character_list": characters}
    return Converted(config, preprocessor, tensors)


def convert_detector(file: OnnxFile, where: object) -> Converted:
    """The detector of lines; CheckpointError for another graph.  where: the file that messages name."""
    tensors = _convolutions(file, [*_backbone(DETECTOR_BLOCKS), *_neck(), *_detector_head()], where)
    backbone = {"model_type": "pp_lcnet_v4", "block_configs": DETECTOR_BLOCKS, "stem_channels": [3, 24, 48]}
    backbone["out_features"] = ["stage1", "stage2", "stage3", "stage4"]
    config = {"model_type": "pp_ocrv6_small_det", "layer_list_out_channels": [48, 96, 192, 384]}
    config |= {"architectures": ["PPOCRV6SmallDetForObjectDetection"], "backbone_config": backbone}
    # PaddleOCR's settings of version 6: the shorter side is 736 pixels or more.
    preprocessor = {"image_processor_type": "PPOCRV5ServerDetImageProcessor", "limit_side_len": 736}
    preprocessor |= {"limit_type": "min", "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Converted(config, preprocessor, tensors)


def _backbone(stages: Sequence[Any]) -> Iterator[str]:
    """The modules of PP-LCNetV4 that are convolutions, in order."""
    start = "model.backbone.encoder"
    yield from (f"{start}.convolution.{name}.convolution" for name in _STEM)
    for i, stage in enumerate(stages):
        for j, (_, d_in, d_out, stride, squeezes) in enumerate(stage):
            own = f"{start}.blocks.{i}.blocks.{j}"
            yield f"{own}.token_conv" if (stride, d_in) == (1, d_out) else f"{own}.token_conv.convolution"
            if squeezes:
                yield from (f"{own}.token_squeeze_excitation.convolutions.{k}" for k in (0, 2))
            yield from (f"{own}.channel_conv{k}.convolution" for k in (1, 2))


def _reader_head() -> Iterator[str]:
    return (f"head.encoder.conv_block.{i}.convolution" for i in range(3))


def _neck() -> Iterator[str]:
    """The pyramid's, from its deepest level up."""
    for i in (3, 2, 1, 0):
        own = f"model.neck.insert_conv.{i}"
        yield from (f"{own}.in_conv", *(f"{own}.squeeze_excitation_block.conv{k}" for k in (1, 2)))
    for i in (3, 2, 1, 0):
        own = f"model.neck.input_conv.{i}"
        yield from (f"{own}.{name}_convolution" for name in ("depthwise", "pointwise"))
        yield from (f"{own}.squeeze_excitation_module.conv{k}" for k in (1, 2))


def _detector_head() -> tuple[str, ...]:
    return "head.conv_down.convolution", "head.conv_up.convolution", "head.conv_final"


def _convolutions(file: OnnxFile, names: Sequence[str], where: object) -> dict[str, np.ndarray]:
    """The tensors of the graph's convolutions and their norms, under the names of the modules."""
    users: dict[str, GraphNode] = {}
    for node in reversed(file.nodes):
        users.update(dict.fromkeys(node.inputs, node))  # the first that reads it
    convolutions = [node for node in file.nodes if node.op in ("Conv", "ConvTranspose")]
    if len(convolutions) != len(names):
        raise CheckpointError(f"{where}: has {len(convolutions)} convolutions, expected {len(names)} of PP-OCRv6 small")
    tensors: dict[str, np.ndarray] = {}
    for name, node in zip(names, convolutions, strict=True):
        weight = _constant(file, node.inputs[1], where)
        after = users.get(node.outputs[0], node)
        while after.op == "Identity":
            after = users.get(after.outputs[0], node)
        constants = [file.constants[one] for one in after.inputs if one in file.constants]
        bias = constants[0].reshape(-1) if after.op == "Add" and constants else None
        stats = constants if after.op == "BatchNormalization" else None
        tensors[f"{name}.weight"] = weight
        if not name.endswith(".convolution"):
            if bias is not None:
                tensors[f"{name}.bias"] = bias
            continue
        if node.op == "ConvTranspose":  # whose class has one beside its norm's
            tensors[f"{name}.bias"] = np.zeros(weight.shape[1], np.float32)
        module = name.removesuffix(".convolution")
        norm = f"{module}.norm" if module in ("head.conv_down", "head.conv_up") else f"{module}.normalization"
        if stats is None and bias is not None:  # a norm that adds the bias, and changes nothing else
            one = np.ones_like(bias)
            stats = [one, bias, np.zeros_like(bias), one * (1 - NORM_EPS)]
        if stats is None or len(stats) != 4:
            raise CheckpointError(f"{where}: {node.outputs[0]} has neither a bias nor a norm, expected one for {norm}")
        for part, array in zip(("weight", "bias", "running_mean", "running_var"), stats, strict=True):
            tensors[f"{norm}.{part}"] = array
    return tensors


def _layer_norms(file: OnnxFile) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weight and bias of each layer norm, which is a division, a product and a sum."""
    sources: Mapping[str, GraphNode] = {name: node for node in file.nodes for name in node.outputs}
    products: dict[str, np.ndarray] = {}
    for node in file.nodes:
        vectors = [file.constants[one] for one in node.inputs if one in file.constants and file.constants[one].size > 1]
        others = [sources[one] for one in node.inputs if one in sources and one not in file.constants]
        if node.op == "Mul" and vectors and others and others[0].op == "Div":
            products[node.outputs[0]] = vectors[0].reshape(-1)
        elif node.op == "Add" and vectors and others and others[0].outputs[0] in products:
            yield products[others[0].outputs[0]], vectors[0].reshape(-1)


def _constant(file: OnnxFile, name: str, where: object) -> np.ndarray:
    if name not in file.constants:
        raise CheckpointError(f"{where}: has no constant {name}, expected a graph of PP-OCRv6 small")
    return file.constants[name]
