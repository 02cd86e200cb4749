"""PP-LCNetV4 and the reader and detector of text that look through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from zoo.files.folder import CheckpointFolder
from zoo.images import ImageProcessor
from zoo.images.processor import ImageBatch
from zoo.images.text_lines import CLASS as LINE_CLASS
from zoo.images.text_lines import OLD_CLASS as OLD_LINE_CLASS
from zoo.images.text_lines import LineProcessor
from zoo.tasks.text_detector import CLASS as PAGE_CLASS
from zoo.tasks.text_detector import PageProcessor

from ..pictures import page
from .common import Spec, labels

if TYPE_CHECKING:
    from PIL import Image

LINES = ((76, 52, 420, 92), (76, 52, 700, 92), (80, 250, 180, 270))  # on the page that comes with zoo, and one is wide


class OcrSpec(Spec):
    """Trained checkpoints have processors of their own, which make several pictures of a line, and one of a page."""

    @staticmethod
    def read_processor(folder: Path) -> Any:
        files = CheckpointFolder.of(folder)
        name = files.json("preprocessor_config.json").get("image_processor_type", "")
        if name.startswith((LINE_CLASS, OLD_LINE_CLASS)):
            return _as_processor(LineProcessor.from_folder(files))
        if name.startswith(PAGE_CLASS):
            processor = PageProcessor.from_folder(files)
            return _as_processor(lambda pages: np.concatenate([processor(one) for one in pages]))
        return ImageProcessor.from_folder(files)

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        """Lines of the page for a reader, the page for a detector; any for random weights."""
        if isinstance(processor, ImageProcessor):
            return ()
        lines = [page().crop(line) for line in LINES]
        return lines if hasattr(config, "head_out_channels") else [page(), page()]  # of one size, as a batch must be


class SLANetSpec(OcrSpec):
    """Of PaddleOCR's trained graph, which has places of cells; transformers' class has none."""

    not_compared: ClassVar[tuple[str, ...]] = ("loc_preds",)


def _as_processor(to_pixels: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[[Sequence[Any]], ImageBatch]:
    """A function from arrays to pixels as one from pictures to a batch."""
    return lambda pictures: ImageBatch(to_pixels([np.asarray(one) for one in pictures]), None, [], [])


_PROCESSOR = {"image_processor_type": "ViTImageProcessor", "do_normalize": True, "do_resize": True, "do_rescale": True}
_PROCESSOR |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2}
LINE: dict[str, Any] = {**_PROCESSOR, "size": {"height": 48, "width": 320}}
PAGE: dict[str, Any] = {**_PROCESSOR, "size": {"height": 64, "width": 96}}

_TINY_BLOCKS = [
    [[3, 12, 12, 1, True]],
    [[3, 12, 12, 1, False], [5, 12, 12, 1, True]],
    [[3, 12, 20, [2, 1], False], [3, 20, 20, 1, True]],
    [[3, 20, 28, [2, 1], True], [3, 28, 28, 1, False]],
]
_NET: dict[str, Any] = {"model_type": "pp_lcnet_v4"}
_TINY_NET: dict[str, Any] = {"stem_channels": [3, 8, 12], "block_configs": _TINY_BLOCKS}
_PAGE_BLOCKS = [
    [[3, 48, 48, 1, 1], [3, 48, 48, 1, 0]],
    [[3, 48, 96, 2, 0], [3, 96, 96, 1, 1], [3, 96, 96, 1, 0]],
    [[3, 96, 192, 2, 0], *([3, 192, 192, 1, i % 2] for i in (1, 0, 1, 0))],
    [[3, 192, 384, 2, 0], [3, 384, 384, 1, 1], [3, 384, 384, 1, 0]],
]
_STAGES = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
_PAGE_NET = {**_NET, **_STAGES, "stem_channels": [3, 24, 48], "block_configs": _PAGE_BLOCKS}
_TINY_PAGE_BLOCKS = [
    [[3, 12, 12, 1, 1]],
    [[3, 12, 16, 2, 0], [5, 16, 16, 1, 1]],
    [[3, 16, 20, 2, 1]],
    [[3, 20, 28, 2, 0], [3, 28, 28, 1, 0]],
]
_TINY_PAGE_NET = {**_PAGE_NET, "stem_channels": [3, 8, 12], "block_configs": _TINY_PAGE_BLOCKS}

_LINE_STRIDES = {"stem_strides": [2, 1, 1, 1, 1], "stage_downsample": [True] * 4}
_LINE_STRIDES |= {"stage_downsample_strides": [[2, 1], [1, 2], [2, 1], [2, 1]]}
_HGNET: dict[str, Any] = {"model_type": "hgnet_v2", **_LINE_STRIDES, **_STAGES}
TINY_HGNET: dict[str, Any] = {"stem_channels": [3, 8, 12], "stage_in_channels": [12, 16, 24, 32]}
TINY_HGNET |= {"stage_mid_channels": [8, 8, 12, 12], "stage_out_channels": [16, 24, 32, 48]}
TINY_HGNET |= {"stage_num_blocks": [1, 2, 1, 1], "stage_numb_of_layers": [2, 2, 3, 2]}
TINY_HGNET |= {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}
_LINE_BLOCKS = [
    [[3, 16, 32, 1, False]],
    [[3, 32, 64, [2, 1], False], [3, 64, 64, 1, False]],
    [[3, 64, 128, [1, 2], False], [3, 128, 128, 1, False]],
    [[3, 128, 256, [2, 1], False], *([5, 256, 256, 1, False] for _ in range(4))],
    [[5, 256, 512, [2, 1], True], [5, 512, 512, 1, True], [5, 512, 512, [2, 1], False], [5, 512, 512, 1, False]],
]
_LCNET_V3: dict[str, Any] = {"model_type": "pp_lcnet_v3", "scale": 0.95, "divisor": 16, "stem_stride": 2}
_LCNET_V3 |= {"block_configs": [*_LINE_BLOCKS[:4], [*_LINE_BLOCKS[4][:2], [5, 512, 512, 1, False]]]}
_TINY_LINE_BLOCKS = [
    [[3, 16, 16, 1, False]],
    [[3, 16, 32, [2, 1], False], [3, 32, 32, 1, False]],
    [[3, 32, 32, [1, 2], True]],
    [[3, 32, 48, [2, 1], False]],
    [[5, 48, 64, [2, 1], True], [5, 64, 64, 1, False]],
]

READER = {"hidden_size": 120, "num_attention_heads": 8, "depth": 2, "head_out_channels": 18710, "backbone_config": _NET}
TINY_READER: dict[str, Any] = {"hidden_size": 24, "num_attention_heads": 4, "head_out_channels": 50}
TINY_READER["backbone_config"] = {**_NET, **_TINY_NET}
DETECTOR = {"neck_out_channels": 96, "layer_list_out_channels": [48, 96, 192, 384], "backbone_config": _PAGE_NET}
TINY_DETECTOR: dict[str, Any] = {"neck_out_channels": 16, "layer_list_out_channels": [12, 16, 20, 28]}
TINY_DETECTOR["backbone_config"] = _TINY_PAGE_NET

_KERNELS = {
    f"{shape}_{distance}ratio": [[y * n or 1, x * n or 1], [1, 1], [y * n // 2, x * n // 2]]
    for n, distance in ((7, "long"), (5, "mid"), (3, "short"))
    for shape, y, x in (
        ("symmetric_conv_long", 1, 1),
        ("vertical_long_to_small_conv", 1, 0),
        ("horizontal_small_to_long_conv", 0, 1),
    )
}
# transformers builds no model without these, for which it has no defaults; the backbone of the medium one is another
# than its default, whose stages do not halve a page.
_WIDE_NECK = {"scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]}
_WIDE_NECK |= {"intraclass_block_config": {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0], **_KERNELS}}
SERVER_DETECTOR = {**_WIDE_NECK, "backbone_config": {"model_type": "hgnet_v2", **_STAGES}}
TINY_SERVER_DETECTOR: dict[str, Any] = {"neck_out_channels": 32}
TINY_SERVER_DETECTOR["backbone_config"] = {**SERVER_DETECTOR["backbone_config"], **TINY_HGNET}
MEDIUM_DETECTOR = {**_WIDE_NECK, "backbone_config": _PAGE_NET}
TINY_MEDIUM_DETECTOR: dict[str, Any] = {"neck_out_channels": 32, "backbone_config": _TINY_PAGE_NET}
_TINY_MOBILE_PAGE_BLOCKS = [
    [[3, 16, 16, 1, False]],
    [[3, 16, 16, 2, False], [3, 16, 16, 1, False]],
    [[3, 16, 32, 2, True]],
    [[3, 32, 48, 2, False]],
    [[5, 48, 64, 2, True], [5, 64, 64, 1, False]],
]
_MOBILE_STAGES = {"out_features": ["stage2", "stage3", "stage4", "stage5"]}
_MOBILE_PAGE_NET = {"model_type": "pp_lcnet_v3", "scale": 0.75, "divisor": 16, **_MOBILE_STAGES}
MOBILE_DETECTOR: dict[str, Any] = {"backbone_config": _MOBILE_PAGE_NET}
TINY_MOBILE_DETECTOR: dict[str, Any] = {"neck_out_channels": 16, "layer_list_out_channels": [8, 12, 16, 20]}
TINY_MOBILE_DETECTOR["backbone_config"] = {**_MOBILE_PAGE_NET, "divisor": 4, "block_configs": _TINY_MOBILE_PAGE_BLOCKS}

_OLD_READER = {**READER, "head_out_channels": 18385}
SERVER_READER = {**_OLD_READER, "backbone_config": _HGNET}
TINY_SERVER_READER: dict[str, Any] = {**TINY_READER, "backbone_config": {**_HGNET, **TINY_HGNET}}
MOBILE_READER = {**_OLD_READER, "backbone_config": _LCNET_V3}
TINY_MOBILE_READER: dict[str, Any] = {
    **TINY_READER,
    "backbone_config": {**_LCNET_V3, "block_configs": _TINY_LINE_BLOCKS},
}

_net = partial(
    OcrSpec, like="save_pretrained", model_type="pp_lcnet_v4", architecture="PPLCNetV4Backbone", processor=LINE
)
# Without these the first convolutions hardly change a probability.
_GAINS = {"stem2a.normalization.weight": 3, "stem2b.normalization.weight": 2, "channel_conv2.normalization.weight": 3}
_reader = partial(OcrSpec, model_type="pp_ocrv6_small_rec", config=READER, tiny=TINY_READER, processor=LINE)
_reader = partial(_reader, gains={**_GAINS, "stem2a.normalization.running_mean": 4, "head.head.weight": 3})
_detector = partial(OcrSpec, model_type="pp_ocrv6_small_det", config=DETECTOR, tiny=TINY_DETECTOR, processor=PAGE)
_server_detector = partial(OcrSpec, model_type="pp_ocrv5_server_det", config=SERVER_DETECTOR, processor=PAGE)
_server_detector = partial(_server_detector, tiny=TINY_SERVER_DETECTOR)
_mobile_detector = partial(OcrSpec, model_type="pp_ocrv5_mobile_det", config=MOBILE_DETECTOR, processor=PAGE)
_mobile_detector = partial(_mobile_detector, tiny=TINY_MOBILE_DETECTOR, gains={"lab.scale": 8})
_NO_ACTIVATION = r"blocks\.(1|2|3|4)\.layers\.0\.depthwise_convolution\.act\.lab\."  # behind a stride of 2
_mobile_detector = partial(_mobile_detector, inert=(*Spec.inert, _NO_ACTIVATION))
_medium_detector = partial(OcrSpec, model_type="pp_ocrv6_medium_det", config=MEDIUM_DETECTOR, processor=PAGE)
_medium_detector = partial(_medium_detector, tiny=TINY_MEDIUM_DETECTOR)

_TINY_LCNET_BLOCKS = [
    [[3, 16, 24, 1, False]],
    [[3, 24, 24, 2, False], [3, 24, 24, 1, True]],
    [[3, 24, 32, [2, 1], False], [5, 32, 32, 1, False]],
    [[5, 32, 40, 2, True]],
    [[3, 40, 48, 2, True], [5, 48, 48, [1, 1], False]],
]
_TINY_LCNET: dict[str, Any] = {"block_configs": _TINY_LCNET_BLOCKS}
# As above: hardswish lets little through, and scales are drawn around a tenth.
_lcnet = partial(_net, model_type="pp_lcnet", architecture="PPLCNetBackbone", gains={"_convolution.convolution": 2})
_lcnet_v3 = partial(_net, model_type="pp_lcnet_v3", architecture="PPLCNetV3Backbone", gains={"lab.scale": 12})
_lcnet_v3 = partial(_lcnet_v3, inert=(*Spec.inert, r"blocks\.(1|3|4)\.layers\.0\.depthwise_convolution\.act\.lab\."))
_hgnet = partial(_net, model_type="hgnet_v2", architecture="HGNetV2Backbone", tiny=TINY_HGNET, processor=PAGE)
_server_reader = partial(OcrSpec, model_type="pp_ocrv5_server_rec", config=SERVER_READER, tiny=TINY_SERVER_READER)
_HGNET_GAINS = {"stem1.convolution": 2, "aggregation.1.convolution": 3, "head.head.weight": 3}
_server_reader = partial(_server_reader, processor=LINE, gains=_HGNET_GAINS)
_mobile_reader = partial(OcrSpec, model_type="pp_ocrv5_mobile_rec", config=MOBILE_READER, tiny=TINY_MOBILE_READER)
_mobile_reader = partial(_mobile_reader, processor=LINE, gains={"lab.scale": 8, "head.head.weight": 6})
_TINY_READER_FIELDS = ("hidden_size", "head_out_channels", "backbone_config")
_tiny_reader = partial(
    OcrSpec,
    model_type="pp_ocrv6_tiny_rec",
    config={name: READER[name] for name in _TINY_READER_FIELDS},
    tiny={name: TINY_READER[name] for name in _TINY_READER_FIELDS},
    processor=LINE,
    gains={**_GAINS, "stem2a.normalization.running_mean": 4, "fc2.weight": 0.1},
)
_TINY_SLANET: dict[str, Any] = {"post_conv_out_channels": 16, "hidden_size": 24, "max_text_length": 5}
_TINY_SLANET_STAGES = {"model_type": "pp_lcnet", "scale": 1.0, "divisor": 4, **_MOBILE_STAGES}
_TINY_SLANET["backbone_config"] = {**_TINY_SLANET_STAGES, "block_configs": _TINY_MOBILE_PAGE_BLOCKS}
_slanet = partial(SLANetSpec, model_type="slanet", architecture="SLANetForTableRecognition", tiny=_TINY_SLANET)
_SLANET_GAINS = {"_convolution.convolution": 2, "squeeze_excitation_module.convolutions.2": 2, "score": 5}
_SLANET_GAINS |= {"encoder.convolution.normalization.bias": 4, "hidden_to_hidden.bias": 15}
_SLANET_GAINS["bottlenecks.0.conv1.convolution"] = 2

SPECS: dict[str, OcrSpec] = {
    "pp-lcnet-table-cls": _lcnet(
        like="PaddlePaddle/PP-LCNet_x1_0_table_cls_safetensors",
        architecture="PPLCNetForImageClassification",
        config=labels("wired_table", "wireless_table"),
        processor=PAGE,
        tiny={**_TINY_LCNET, "class_expand": 64},
        full=True,
    ),
    "pp-lcnet": _lcnet(tiny={**_TINY_LCNET, "scale": 0.75, "out_features": ["stem", "stage2", "stage5"]}),
    "pp-lcnet-v3": _lcnet_v3(
        tiny={**_TINY_LCNET, "scale": 0.95, "divisor": 16, "out_features": ["stage2", "stage3", "stage5"]}
    ),
    "pp-lcnet-v3-two-branches": _lcnet_v3(tiny={**_TINY_LCNET, "conv_symmetric_num": 2}, format="sharded"),
    "pp-lcnet-v4": _net(tiny={**_TINY_NET, "out_features": ["stem", "stage2", "stage4"]}),
    "pp-lcnet-v4-small-stem": _net(tiny={**_TINY_NET, "stem_type": "small"}, format="sharded"),
    "hgnet-v2": _hgnet(
        like="ustc-community/hgnet-v2",
        architecture="HGNetV2ForImageClassification",
        config=labels("no", "yes", "perhaps"),
        full=True,
    ),
    "hgnet-v2-affine": _hgnet(
        tiny={**TINY_HGNET, "use_learnable_affine_block": True, "out_features": ["stem", "stage2", "stage4"]},
        gains={"lab.scale": 12},
    ),
    "pp-ocrv5-server-rec": _server_reader(
        like="PaddlePaddle/PP-OCRv5_server_rec_safetensors",
        architecture="PPOCRV5ServerRecForTextRecognition",
        full=True,
    ),
    "pp-ocrv5-server-rec-bare": _server_reader(like="save_pretrained", architecture="PPOCRV5ServerRecModel"),
    "pp-ocrv5-mobile-rec": _mobile_reader(
        like="PaddlePaddle/PP-OCRv5_mobile_rec_safetensors",
        architecture="PPOCRV5MobileRecForTextRecognition",
        full=True,
    ),
    "pp-ocrv5-mobile-rec-bare": _mobile_reader(like="save_pretrained", architecture="PPOCRV5MobileRecModel"),
    "pp-ocrv6-tiny-rec": _tiny_reader(
        like="PaddlePaddle/PP-OCRv6_tiny_rec_safetensors", architecture="PPOCRV6TinyRecForTextRecognition", full=True
    ),
    "pp-ocrv6-tiny-rec-bare": _tiny_reader(like="save_pretrained", architecture="PPOCRV6TinyRecModel"),
    "pp-ocrv6-small-rec": _reader(
        like="PaddlePaddle/PP-OCRv6_small_rec_safetensors", architecture="PPOCRV6SmallRecForTextRecognition", full=True
    ),
    "pp-ocrv6-small-rec-bare": _reader(like="save_pretrained", architecture="PPOCRV6SmallRecModel"),
    "pp-ocrv5-server-det": _server_detector(
        like="PaddlePaddle/PP-OCRv5_server_det_safetensors",
        architecture="PPOCRV5ServerDetForObjectDetection",
        full=True,
    ),
    "pp-ocrv5-server-det-bare": _server_detector(like="save_pretrained", architecture="PPOCRV5ServerDetModel"),
    "pp-ocrv5-mobile-det": _mobile_detector(
        like="PaddlePaddle/PP-OCRv5_mobile_det_safetensors",
        architecture="PPOCRV5MobileDetForObjectDetection",
        full=True,
    ),
    "pp-ocrv6-medium-det": _medium_detector(
        like="PaddlePaddle/PP-OCRv6_medium_det_safetensors",
        architecture="PPOCRV6MediumDetForObjectDetection",
        full=True,
    ),
    "pp-ocrv6-medium-det-bare": _medium_detector(like="save_pretrained", architecture="PPOCRV6MediumDetModel"),
    "pp-ocrv6-small-det": _detector(
        like="PaddlePaddle/PP-OCRv6_small_det_safetensors", architecture="PPOCRV6SmallDetForObjectDetection", full=True
    ),
    "pp-ocrv6-small-det-bare": _detector(like="save_pretrained", architecture="PPOCRV6SmallDetModel"),
    "slanet": _slanet(like="PaddlePaddle/SLANet_plus_safetensors", processor=PAGE, gains=_SLANET_GAINS),
}
