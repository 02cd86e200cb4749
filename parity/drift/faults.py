"""Faults of transformers that zoo's users meet, each with the few lines that show it, in whatever version runs them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zoo.files.folder import CheckpointFolder


class Fault(NamedTuple):
    """about: what is wrong.  reproduce: what it does in the version that runs; "" if all is well there."""

    about: str
    reproduce: Callable[[], str]


def save_t5_scaling() -> str:
    import transformers

    saved: dict[bool, Any] = {}
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 32}
    for tied in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            transformers.T5Config(**sizes, tie_word_embeddings=tied).save_pretrained(folder)
            saved[tied] = CheckpointFolder(folder).json("config.json").get("tie_word_embeddings", True)
    return "" if saved == {True: True, False: False} else f"false is saved as {str(saved[False]).lower()}"


def compare_resampling() -> str:
    import transformers

    if not transformers.utils.is_torchvision_available():
        raise ImportError("torchvision, the other back end, is not installed")
    from transformers.models.idefics3 import image_processing_idefics3 as module

    pillow: Any = getattr(transformers, "Idefics3ImageProcessorPil", None) or transformers.Idefics3ImageProcessor
    fast: Any = getattr(transformers, "Idefics3ImageProcessorFast", None) or module.Idefics3ImageProcessor
    picture = np.random.default_rng(0).integers(0, 256, (90, 60, 3), np.uint8)
    found = []
    for cls, bits in ((pillow, np.uint8), (fast, np.uint8)):
        options = {"size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 48}, "do_image_splitting": False}
        pixels = cls(**options)(picture.astype(bits), return_tensors="np", input_data_format="channels_last")
        found.append(np.asarray(pixels["pixel_values"], np.float32) * 127.5)
    apart = np.abs(found[0] - found[1])
    return "" if apart.max() < 1.5 else f"levels of 256 differ by {apart.max():.0f}, in the mean by {apart.mean():.1f}"


def run_small_detector() -> str:
    import torch
    import transformers

    try:
        transformers.PPOCRV6SmallDetForObjectDetection(transformers.PPOCRV6SmallDetConfig())(torch.zeros(1, 3, 64, 64))
    except RuntimeError as e:
        return str(e)
    return ""


def count_epsilons() -> str:
    import torch
    import transformers

    model = transformers.PPOCRV6SmallRecForTextRecognition(transformers.PPOCRV6SmallRecConfig())
    found = [module.eps for module in model.modules() if isinstance(module, torch.nn.LayerNorm)]
    return "" if len(set(found)) > 1 else f"{len(found)} norms have {found[0]}"


FAULTS = {
    "T5's scaling": Fault(
        "`T5Config` saves `tie_word_embeddings: true` whatever it was: what reads T5's scaling from it, as "
        "transformers 4 does, then scales the logits of a Flan-T5",
        save_t5_scaling,
    ),
    "Idefics3's resampling": Fault(
        "an image processor that asks for LANCZOS does it with Pillow, and something else with torchvision",
        compare_resampling,
    ),
    "PP-OCRv6's detector": Fault(
        "`PPOCRV6SmallDetConfig()` makes a model that cannot run: its defaults are not those of any checkpoint",
        run_small_detector,
    ),
    "PP-OCRv6's norms": Fault(
        "`PPOCRV6SmallRecConfig` has one epsilon for five norms; PaddleOCR's graph has 1e-5 in its two layers, and "
        "1e-6 after them",
        count_epsilons,
    ),
}


def reproduce_faults() -> dict[str, str]:
    """What each fault does in the version that runs; "" if it is not there, "not run: ..." if that cannot be told."""
    found = {}
    for name, fault in FAULTS.items():
        try:
            found[name] = fault.reproduce()
        except Exception as e:  # a version without the class, a package that is not installed
            found[name] = f"not run: {type(e).__name__}: {' '.join(str(e).split())}"[:200]
    return found
