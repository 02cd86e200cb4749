"""PaddleOCR's ONNX graph of SLANet as a checkpoint of transformers' class, with the head of cells' places besides.

The graph is PaddlePaddle's own export (https://github.com/PaddlePaddle/PaddleOCR, Apache-2.0).  Its constants have
numbers in the order in which the modules were made.  It writes a part of the tokens that transformers' processor has:
the others get no probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..weights.onnx_file import OnnxFile
from .paddle_ocr import Converted

# The tokens of transformers' SLANeXtImageProcessor, in the order of the model's outputs.
START, END = "sos", "eos"
TABLE_TOKENS = (
    *(START, "<thead>", "</thead>", "<tbody>", "</tbody>", "<tr>", "</tr>", "<td", ">", "</td>"),
    *(f' {name}="{n}"' for name in ("colspan", "rowspan") for n in range(2, 21)),
    *("<td></td>", END),
)
MISSING_LOGIT = -1e4  # the logit of a token that the graph does not have
SIDE = 488  # pixels of the long side of what the graph was trained on
BLUE_FIRST_MEAN, BLUE_FIRST_STD = [0.406, 0.456, 0.485], [0.225, 0.224, 0.229]

BACKBONE_SQUEEZES = ((0,), (0, 0), (0, 0), (0,) * 6, (1, 1))  # whether each block of each stage has one
BACKBONE_NORMS = 27  # the norms of the backbone, which are numbered by themselves
_BLOCK = ("conv2", "conv1", "conv3", "bottlenecks.0.conv1")
_SEPARABLE = ("depthwise_convolution", "pointwise_convolution")
_CELL, _WRITE, _PLACES = "head.structure_attention_cell", "head.structure_generator", "head.loc_generator"
# Linear layers in the order of their numbers.
_LINEAR = (f"{_CELL}.input_to_hidden", f"{_CELL}.hidden_to_hidden", f"{_CELL}.score")
_LINEAR += (f"{_WRITE}.fc1", f"{_WRITE}.fc2", f"{_PLACES}.fc1", f"{_PLACES}.fc2")
_WITHOUT_BIAS = (f"{_CELL}.input_to_hidden", f"{_CELL}.score")
_GRU = {"w_0": "weight_ih", "w_1": "weight_hh", "b_0": "bias_ih", "b_1": "bias_hh"}


def convert_structure(file: OnnxFile, where: object) -> Converted:
    """SLANet; CheckpointError for another graph.  where: the file that messages name."""

    def constant(name: str) -> np.ndarray:
        if name not in file.constants:
            raise CheckpointError(f"{where}: has no constant {name}, expected a graph of SLANet")
        return file.constants[name]

    tensors, norms = {}, 0
    for i, (name, has_norm) in enumerate(_convolutions()):
        tensors[f"{name}.weight"] = constant(f"conv2d_{i}.w_0")
        if not has_norm:
            tensors[f"{name}.bias"] = constant(f"conv2d_{i}.b_0")
            continue
        own = f"batch_norm_{norms}" if norms < BACKBONE_NORMS else f"batch_norm2d_{norms - BACKBONE_NORMS}"
        norm = f"{name.removesuffix('.convolution')}.normalization"
        norms += 1
        for part, key in (("weight", "w_0"), ("bias", "b_0"), ("running_mean", "w_1"), ("running_var", "w_2")):
            tensors[f"{norm}.{part}"] = constant(f"{own}.{key}")
    for i, name in enumerate(_LINEAR):
        tensors[f"{name}.weight"] = constant(f"linear_{i}.w_0").T
        if name not in _WITHOUT_BIAS:
            tensors[f"{name}.bias"] = constant(f"linear_{i}.b_0")
    tensors |= {f"{_CELL}.rnn.{name}": constant(f"gru_cell_0.{key}") for key, name in _GRU.items()}
    first = f"{next(_convolutions())[0]}.weight"
    tensors[first] = tensors[first][:, ::-1]  # the graph takes blue first, transformers' processor gives red first
    _order_tokens(tensors, _tokens(file, len(tensors[f"{_WRITE}.fc2.bias"]), where))
    config: dict[str, Any] = {"model_type": "slanet", "architectures": ["SLANetForTableRecognition"]}
    config |= {"out_channels": len(TABLE_TOKENS), "loc_reg_num": 4}
    side = {"height": SIDE, "width": SIDE}
    preprocessor: dict[str, Any] = {"image_processor_type": "SLANeXtImageProcessor", "size": side, "pad_size": side}
    preprocessor |= {"image_mean": BLUE_FIRST_MEAN, "image_std": BLUE_FIRST_STD}
    return Converted(config, preprocessor, tensors)


def _tokens(file: OnnxFile, outputs: int, where: object) -> list[int]:
    """The numbers in TABLE_TOKENS of the graph's outputs; its metadata lists all but the first and the last."""
    listed = file.metadata.get("character", "").split("\n")
    tokens = [START, *(one for one in listed if one != "<td>"), "<td></td>", END]  # as PaddleOCR merges them
    if len(tokens) != outputs or len(set(tokens)) != outputs or not set(tokens) <= set(TABLE_TOKENS):
        raise CheckpointError(
            f"{where}: the metadata lists {len(listed)} tokens, {listed!s:.200}, expected the {outputs - 2} tokens "
            "of a table for its outputs"
        )
    return [TABLE_TOKENS.index(one) for one in tokens]


def _order_tokens(tensors: dict[str, np.ndarray], numbers: list[int]) -> None:
    """Give the head transformers' tokens, of which the graph's outputs are those with these numbers."""
    weight, bias, inputs = (f"{_WRITE}.fc2.weight", f"{_WRITE}.fc2.bias", f"{_CELL}.rnn.weight_ih")
    wide = tensors[inputs].shape[1] - len(numbers)  # what is read comes before the last token
    found = {
        weight: np.zeros((len(TABLE_TOKENS), tensors[weight].shape[1]), np.float32),
        bias: np.full(len(TABLE_TOKENS), MISSING_LOGIT, np.float32),
        inputs: np.zeros((len(tensors[inputs]), wide + len(TABLE_TOKENS)), np.float32),
    }
    found[weight][numbers], found[bias][numbers] = tensors[weight], tensors[bias]
    found[inputs][:, :wide] = tensors[inputs][:, :wide]
    found[inputs][:, [wide + n for n in numbers]] = tensors[inputs][:, wide:]
    tensors |= found


def _convolutions() -> Iterator[tuple[str, bool]]:
    """The convolutions in order, and whether a norm follows."""
    start, neck = "backbone.vision_backbone.encoder", "backbone.post_csp_pan"
    yield f"{start}.convolution.convolution", True
    for i, stage in enumerate(BACKBONE_SQUEEZES):
        for j, squeezes in enumerate(stage):
            own = f"{start}.blocks.{i}.layers.{j}"
            yield f"{own}.depthwise_convolution.convolution", True
            if squeezes:
                yield from ((f"{own}.squeeze_excitation_module.convolutions.{k}", False) for k in (0, 2))
            yield f"{own}.pointwise_convolution.convolution", True
    yield from ((f"{neck}.channel_projector.{i}.convolution", True) for i in range(4))

    def block(own: str) -> Iterator[tuple[str, bool]]:
        yield from ((f"{own}.{name}.convolution", True) for name in _BLOCK)
        yield from ((f"{own}.bottlenecks.0.conv2.{name}.convolution", True) for name in _SEPARABLE)

    for i in range(3):
        yield from block(f"{neck}.top_down_blocks.{i}")
    for i in range(3):
        yield from ((f"{neck}.downsamples.{i}.{name}.convolution", True) for name in _SEPARABLE)
        yield from block(f"{neck}.bottom_up_blocks.{i}")
