"""PRESETS: the defaults and the steps of transformers' classes of image processors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

LANCZOS, BILINEAR, BICUBIC = 1, 2, 3
IMAGENET_STANDARD = (0.5, 0.5, 0.5)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# What transformers' processor gives where a file has null.
PAN_AND_SCAN = {"pan_and_scan_min_crop_size": 256, "pan_and_scan_max_num_crops": 4}
PAN_AND_SCAN |= {"pan_and_scan_min_ratio_to_activate": 1.2}
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class Preset:
    """The defaults of a processor class of transformers, and the steps that it has."""

    defaults: dict[str, Any]
    square: bool = True  # True: `size: 384` is 384 x 384; False: a shortest edge of 384
    crops: bool = True
    pads: bool = True
    mask: bool = False
    tiles: bool = False  # True: an image becomes several, as `tiles` cuts it
    blue_first: bool = False  # True: the channels are blue, green and red, unless do_flip_channel_order says no
    normalises: bool = True  # False: do_normalize changes nothing
    step: int = 1  # sides of an image that keeps its shape are multiples of it
    rounds_up: bool = False  # True: both sides of a resized image are multiples of `size_divisor`
    antialias: bool = True  # False: resizing looks at the nearest pixels alone, as OpenCV's does
    rounds: bool = True  # False: without antialias, resizing gives fractions of grey levels
    fits: bool = False  # True: an image is fitted into `size`, as Donut does
    keeps_shape: bool = False  # True: the long side becomes the larger number of `size`
    frames: bool = False  # True: bounds of pixels are those of all frames that an image is repeated for
    pads_to_square: bool = False  # True: an image is padded to a square before it is resized, as OWLv2 does
    crops_persons: bool = False  # True: a box becomes an image of `size`, as in ViTPose
    least_side: bool = False  # True: each side is at least that of a token before bounds of pixels are looked at


_COMMON = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255}
_VIT = {**_COMMON, "size": 224, "resample": BILINEAR, "image_mean": IMAGENET_STANDARD, "image_std": IMAGENET_STANDARD}
_CLIP = Preset(
    {
        **_COMMON,
        "size": {"shortest_edge": 224},
        "resample": BICUBIC,
        "do_center_crop": True,
        "crop_size": 224,
        "image_mean": CLIP_MEAN,
        "image_std": CLIP_STD,
    },
    square=False,
)
# Whose tiles have one size, so that none is padded.
_IDEFICS3 = Preset(
    {
        **_VIT,
        "size": {"longest_edge": 4 * 364},
        "resample": LANCZOS,
        "max_image_size": {"longest_edge": 364},
        "do_image_splitting": True,
        "return_row_col_info": False,
    },
    square=False,
    crops=False,
    pads=False,
    tiles=True,
)
_PP_DOCLAYOUT = Preset(
    {
        **_COMMON,
        "size": {"height": 800, "width": 800},
        "resample": BICUBIC,
        "image_mean": (0.0, 0.0, 0.0),
        "image_std": (1.0, 1.0, 1.0),
    },
    square=False,
    crops=False,
    pads=False,
    antialias=False,
)
# Whose images have any number of pixels between the two of `size`, in whole squares of patches.
_QWEN2_VL = Preset(
    {
        **_COMMON,
        "size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
        "min_pixels": None,
        "max_pixels": None,
        "resample": BICUBIC,
        "image_mean": CLIP_MEAN,
        "image_std": CLIP_STD,
        "patch_size": 14,
        "merge_size": 2,
        "temporal_patch_size": 2,
    },
    square=False,
    crops=False,
    pads=False,
)
_DETR = Preset(
    {
        **_COMMON,
        "size": {"shortest_edge": 800, "longest_edge": 1333},
        "resample": BILINEAR,
        "image_mean": IMAGENET_MEAN,
        "image_std": IMAGENET_STD,
        "max_size": 1333,
        "do_pad": True,
    },
    square=False,
    crops=False,
    mask=True,
)
# The name of the class, without what ends all their names -> what it does.
PRESETS = {
    "ViT": Preset(_VIT),
    "DeiT": Preset({**_VIT, "size": 256, "resample": BICUBIC, "do_center_crop": True, "crop_size": 224}),
    # transformers rounds no grey level between resizing and rescaling: the two differ by half a level at most.
    "DINOv3ViT": Preset({**_VIT, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD}),
    # transformers' own also reads the words, with Tesseract: here they are given.
    "LayoutLMv3": Preset(
        {**_VIT, "apply_ocr": True, "ocr_lang": None, "tesseract_config": ""}, crops=False, pads=False
    ),
    "Blip": Preset(
        {**_COMMON, "size": 384, "resample": BICUBIC, "image_mean": CLIP_MEAN, "image_std": CLIP_STD},
        crops=False,
        pads=False,
    ),
    "Beit": Preset({**_VIT, "resample": BICUBIC, "crop_size": 224}, pads=False),
    "Bit": _CLIP,
    "CLIP": _CLIP,
    "ChineseCLIP": _CLIP,
    "ConvNext": Preset(
        {
            **_COMMON,
            "size": {"shortest_edge": 384},
            "resample": BICUBIC,
            "crop_pct": 224 / 256,
            "image_mean": IMAGENET_STANDARD,
            "image_std": IMAGENET_STANDARD,
        },
        square=False,
    ),
    "Siglip": Preset({**_VIT, "size": {"height": 224, "width": 224}, "resample": BICUBIC}, square=False),
    # Whose `size` is the number of patches that an image is cut into.
    "Siglip2": Preset(
        {**_VIT, "size": None, "patch_size": 16, "max_num_patches": 256}, square=False, crops=False, pads=False
    ),
    "Qwen2VL": _QWEN2_VL,
    "PaddleOCRVL": replace(
        _QWEN2_VL,
        defaults={
            **_QWEN2_VL.defaults,
            "size": {"shortest_edge": 384 * 384, "longest_edge": 1536 * 1536},
            "temporal_patch_size": 1,
        },
        least_side=True,
    ),
    "Glm46V": replace(
        _QWEN2_VL,
        defaults={**_QWEN2_VL.defaults, "size": {"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000}},
        frames=True,
    ),
    # Which makes the short side that of `size`, then fits the image into `size`, and puts black around it.
    "Donut": Preset(
        {
            **_VIT,
            "size": {"height": 2560, "width": 1920},
            "do_thumbnail": True,
            "do_align_long_axis": False,
            "do_pad": True,
        },
        crops=False,
        fits=True,
    ),
    "OwlViT": Preset(
        {
            **_COMMON,
            "size": {"height": 768, "width": 768},
            "resample": BICUBIC,
            "do_center_crop": False,
            "crop_size": {"height": 768, "width": 768},
            "image_mean": CLIP_MEAN,
            "image_std": CLIP_STD,
        },
        pads=False,
    ),
    "Owlv2": Preset(
        {
            **_COMMON,
            "size": {"height": 960, "width": 960},
            "resample": BILINEAR,
            "image_mean": CLIP_MEAN,
            "image_std": CLIP_STD,
            "do_pad": True,
        },
        crops=False,
        pads=False,
        pads_to_square=True,
    ),
    "VitPose": Preset(
        {
            "do_rescale": True,
            "do_normalize": True,
            "rescale_factor": 1 / 255,
            "do_resize": False,  # which their class does not read
            "resample": BILINEAR,
            "size": {"height": 256, "width": 192},
            "image_mean": IMAGENET_MEAN,
            "image_std": IMAGENET_STD,
            "do_affine_transform": True,
            "normalize_factor": 200.0,
        },
        crops=False,
        pads=False,
        crops_persons=True,
    ),
    "Gemma3": Preset({**_VIT, "do_pan_and_scan": False, **PAN_AND_SCAN}, crops=False, pads=False),
    # Whose tiles are of one size, `size`; see PASSED_VALUES.
    "GotOcr2": Preset(
        {
            **_COMMON,
            "size": {"height": 384, "width": 384},
            "resample": BICUBIC,
            "image_mean": CLIP_MEAN,
            "image_std": CLIP_STD,
            "crop_to_patches": False,
            "min_patches": 1,
            "max_patches": 12,
        },
        crops=False,
        pads=False,
    ),
    "Idefics3": _IDEFICS3,
    "SmolVLM": _IDEFICS3,
    # Whose images keep their shape, in whole patches.
    "Pixtral": Preset(
        {
            **_COMMON,
            "size": {"longest_edge": 1024},
            "patch_size": {"height": 16, "width": 16},
            "resample": BICUBIC,
            "image_mean": CLIP_MEAN,
            "image_std": CLIP_STD,
            "do_pad": True,
        },
    ),
    "MobileNetV2": Preset(
        {
            **_VIT,
            "size": {"shortest_edge": 256},
            "do_center_crop": True,
            "crop_size": {"height": 224, "width": 224},
        },
        square=False,
        pads=False,
    ),
    "MobileViT": Preset(
        {
            **_VIT,
            "size": {"shortest_edge": 224},
            "resample": BICUBIC,
            "do_center_crop": True,
            "crop_size": {"height": 256, "width": 256},
            "do_flip_channel_order": True,
        },
        square=False,
        pads=False,
        blue_first=True,
        normalises=False,
    ),
    # Whose images are divided by the standard deviation twice (`include_top`), or moved to -1 ... 1 (`rescale_offset`).
    "EfficientNet": Preset(
        {
            **_VIT,
            "size": {"height": 346, "width": 346},
            "resample": BICUBIC,
            "crop_size": {"height": 289, "width": 289},
            "rescale_offset": False,
            "include_top": True,
        },
        pads=False,
    ),
    "Segformer": Preset(
        {**_VIT, "size": 512, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD}, crops=False, pads=False
    ),
    # Whose images keep their shape, or not, in sizes that are multiples of a number.
    "DPT": Preset(
        {**_VIT, "size": 384, "resample": BICUBIC, "ensure_multiple_of": 1, "keep_aspect_ratio": False},
        crops=False,
        pads=False,
    ),
    "RTDetr": Preset(
        {
            **_COMMON,
            "size": {"height": 640, "width": 640},
            "resample": BILINEAR,
            "do_normalize": False,
            "image_mean": IMAGENET_MEAN,
            "image_std": IMAGENET_STD,
        },
        square=False,
        crops=False,
    ),
    # Whose long side becomes that of `size`, and which is padded to a square.
    "Sam": Preset(
        {
            **_COMMON,
            "size": {"longest_edge": 1024},
            "resample": BILINEAR,
            "image_mean": IMAGENET_MEAN,
            "image_std": IMAGENET_STD,
            "do_pad": True,
            "pad_size": {"height": 1024, "width": 1024},
            "mask_size": None,
            "mask_pad_size": None,
        },
        square=False,
        crops=False,
    ),
    # transformers resizes bytes by torchvision, not by Pillow: the two differ by a grey level.
    "Sam2": Preset(
        {
            **_COMMON,
            "size": {"height": 1024, "width": 1024},
            "resample": BILINEAR,
            "image_mean": IMAGENET_MEAN,
            "image_std": IMAGENET_STD,
            "mask_size": None,
        },
        crops=False,
        pads=False,
    ),
    "PPDocLayoutV2": _PP_DOCLAYOUT,
    "PPDocLayoutV3": _PP_DOCLAYOUT,
    # Where it enlarges, transformers takes the pixels of the first row and column from the last ones; zoo does not.
    "SLANeXt": Preset(
        {
            **_COMMON,
            "size": {"height": 512, "width": 512},
            "resample": BILINEAR,
            "image_mean": IMAGENET_MEAN,
            "image_std": IMAGENET_STD,
            "do_pad": True,
            "pad_size": {"height": 512, "width": 512},
        },
        square=False,
        antialias=False,
        keeps_shape=True,
    ),
    # transformers subtracts the means of blue, green and red from red, green and blue, and turns the channels round.
    "PPLCNet": Preset(
        {
            **_COMMON,
            "size": {"height": 256, "width": 256},
            "resample": BILINEAR,
            "do_center_crop": True,
            "crop_size": 224,
            "resize_short": 256,
            "size_divisor": 1,
            "image_mean": IMAGENET_MEAN[::-1],
            "image_std": (0.225, 0.224, 0.229),
        },
        square=False,
        pads=False,
        blue_first=True,
    ),
    "Detr": _DETR,
    "ConditionalDetr": _DETR,
    "DeformableDetr": _DETR,
    "GroundingDino": _DETR,
    "RfDetr": replace(_DETR, antialias=False, rounds=False),
    # Whose models look at what was padded, too.
    "Mask2Former": replace(
        _DETR,
        defaults={
            **_DETR.defaults,
            "max_size": None,
            "_max_size": None,  # of the files on the Hub, and not read
            "size_divisor": 32,
            "ignore_index": None,
            "num_labels": None,
        },
        mask=False,
        rounds_up=True,
    ),
    "Yolos": replace(_DETR, step=16, mask=False),  # its models look at what was padded, too
}

# What transformers' processor of a model type passes to its image processor, whatever preprocessor_config.json says.
PASSED_VALUES: dict[str, dict[str, Any]] = {
    "got_ocr2": {"crop_to_patches": False, "min_patches": 1, "max_patches": 12},
    "internvl": {"crop_to_patches": True},
}
