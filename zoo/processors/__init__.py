"""Processors: what lies between a file on the disk and a model's arrays.  Pillow is imported at first use."""

from __future__ import annotations

from .image import ImageBatch, ImageProcessor
from .pictures import MOST_PIXELS, Picture, open_picture

__all__ = ["MOST_PIXELS", "ImageBatch", "ImageProcessor", "Picture", "open_picture"]
