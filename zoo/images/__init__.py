"""Image processors: from a file on the disk to a model's arrays.  Pillow is imported at first use."""

from __future__ import annotations

from .open import MAX_PIXELS, ImageFile, ImageInput, open_image, open_pixels
from .processor import ImageBatch, ImageProcessor

__all__ = ["MAX_PIXELS", "ImageBatch", "ImageFile", "ImageInput", "ImageProcessor", "open_image", "open_pixels"]
