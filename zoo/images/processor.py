"""ImageProcessor: images to a model's pixel_values, as preprocessor_config.json says (NumPy and Pillow).

Equal bit by bit to the Pillow backend of transformers 5 in each of `PRESETS`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ConfigError, InputError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..ops import on_numpy
from ..registry import FAMILIES
from .fit import Fit, read_fit
from .open import MAX_PIXELS, ImageInput, open_image
from .persons import PersonCrop, read_person_crop
from .presets import PASSED_VALUES, PRESETS
from .settings import (
    STEPS,
    TORCH_MODES,
    merged_patches,
    preset_name,
    read_flag,
    read_own_square,
    read_table,
    read_values,
)
from .sizes import read_height_width, read_size, resized_shape
from .square import Square
from .tiles import PanAndScan, Tiling, TilingByShape, read_pan_and_scan, read_tiling, read_tiling_by_shape

if TYPE_CHECKING:
    from PIL import Image


class ImageBatch(NamedTuple):
    """The input of a vision model."""

    pixel_values: np.ndarray  # (B, H, W, 3) float32
    pixel_mask: np.ndarray | None  # (B, H, W) bool, True where there is image; None unless the family pads
    sizes: list[tuple[int, int]]  # (height, width) of each image as it was given, upright
    grids: list[tuple[int, int]]  # rows and columns of each image's tiles; (0, 0) if it is one


@dataclass(frozen=True, eq=False)
class ImageProcessor:
    """Images to arrays; made by `from_folder` or `from_dict`.

    The steps, each of them where its field is not None: convert to RGB, resize (`size`: see `sizes.RULES`), `crop` the
    centre (smaller images are laid on black), `fit` a page into a size, pad to a `square` and resize that, or cut the
    image into tiles (`tiling`) or make crops besides (`crops`), look the 256 values of a byte up in `table`, pad a
    batch on the right and at the bottom with zeros.

    `pad_line`, which is zoo's own (`"do_pad_line": true` in the file): an image narrower than `size` keeps its shape
    and gets paper on its right, of the median colour of its top, bottom and right edges, instead of being stretched.
    """

    family: str
    size: dict[str, int] | None  # the file's, in the form of an object
    resample: int  # Pillow's number: 0 nearest, 1 Lanczos, 2 bilinear, 3 bicubic, 4 box, 5 Hamming
    crop: tuple[int, int] | None  # (height, width)
    pad: bool
    pad_size: tuple[int, int] | None  # (height, width); None: the largest of the batch
    mask: bool
    table: np.ndarray = field(repr=False)  # (256, 3) float32: rescaled and normalised
    pad_line: bool = False
    blue_first: bool = False  # the table's columns and the pixel values are those of blue, green and red
    tiling: Tiling | TilingByShape | None = None
    crops: PanAndScan | None = None
    antialias: bool = True  # False: resizing looks at the nearest pixels alone, see `_interpolate`
    rounds: bool = True  # False: then it gives fractions of grey levels, which are rescaled as they are
    fit: Fit | None = None
    square: Square | None = None
    person: PersonCrop | None = None  # by which the whole image, or what `of_boxes` is given, becomes one of its size

    @classmethod
    def from_folder(
        cls, folder: str | os.PathLike[str] | CheckpointFolder, model_type: str | None = None
    ) -> ImageProcessor:
        """The processor of a checkpoint: of preprocessor_config.json, or of processor_config.json's `image_processor`.

        Where neither names a class, it is that of the model type (for TrOCR, of the encoder's), which is read from
        config.json if it is not given.
        """
        folder, name = CheckpointFolder.of(folder), "processor_config.json"
        whole = folder.json(name) if folder.has(name) else {}
        raw = whole.get("image_processor")
        if not isinstance(raw, dict):
            name = "preprocessor_config.json"
            raw = folder.json(name)
        if model_type is None:
            config = folder.json("config.json") if folder.has("config.json") else {}
            encoder = config.get("encoder")
            model_type = (encoder if isinstance(encoder, dict) else config).get("model_type")
        row = FAMILIES.get(model_type) if isinstance(model_type, str) else None
        try:
            passed = PASSED_VALUES.get(str(model_type), {}) if model_type != "mistral3" else merged_patches(whole)
            return cls.from_dict({**raw, **passed}, row.processor if row else None)
        except (ConfigError, UnsupportedError) as e:
            raise type(e)(f"{folder.where(name)}: {e}") from None

    @classmethod
    def from_dict(cls, raw: dict[str, Any], default: str | None = None) -> ImageProcessor:
        """The processor of the object in a preprocessor_config.json; default: the class where that names none."""
        name = preset_name(raw, default)
        preset = PRESETS[name]
        values = read_values(raw, name, preset)
        on = {step: read_flag(step, values.get(step)) for step in STEPS}
        resample = values["resample"]
        if on["do_resize"] and (type(resample) is not int or not 0 <= resample <= 5):
            raise ConfigError(f"resample = {resample!r}, expected one of Pillow's filters 0 ... 5")
        if on["do_resize"] and not preset.antialias and resample not in TORCH_MODES:
            raise UnsupportedError(f"resample = {resample} for {name}ImageProcessor, zoo has {sorted(TORCH_MODES)}")
        crops, pads = on["do_center_crop"] and preset.crops, on["do_pad"] and preset.pads and not preset.fits
        tiling = read_tiling(values, on["do_resize"]) if preset.tiles else None
        if read_flag("crop_to_patches", values.get("crop_to_patches")):
            tiling = read_tiling_by_shape(values)
        pans = read_flag("do_pan_and_scan", values.get("do_pan_and_scan"))
        fit = read_fit(values, on) if preset.fits else None
        square = read_own_square(values, on, name) if preset.pads_to_square else None
        person = read_person_crop(values, name) if preset.crops_persons else None
        has_size = on["do_resize"] and tiling is None and fit is None and square is None and person is None
        size = read_size(values["size"], values.get("max_size"), preset.square) if has_size else None
        if size is not None and preset.step > 1 and size.keys() == {"shortest_edge", "longest_edge"}:
            size = {**size, "step": preset.step}
        if size is not None and preset.rounds_up and values["size_divisor"]:
            size = read_size({**size, "divisor": values["size_divisor"]}, None, preset.square)
        if on["do_pad_line"] and (size is None or "height" not in size):
            raise ConfigError(f"do_pad_line = true needs a size of height and width, found {size}")
        table = read_table(values, on["do_rescale"], on["do_normalize"] and preset.normalises)
        blue_first = preset.blue_first
        if "do_flip_channel_order" in preset.defaults:
            blue_first = read_flag("do_flip_channel_order", values["do_flip_channel_order"])
        return cls(
            family=name,
            size=size,
            resample=resample,
            crop=read_height_width("crop_size", values.get("crop_size")) if crops else None,
            pad=pads,
            pad_size=read_height_width("pad_size", values["pad_size"]) if pads and values.get("pad_size") else None,
            mask=pads and preset.mask,
            table=table[:, ::-1] if blue_first else table,
            pad_line=on["do_pad_line"],
            blue_first=blue_first,
            tiling=tiling,
            crops=read_pan_and_scan(values) if pans else None,
            antialias=preset.antialias,
            rounds=preset.rounds,
            fit=fit,
            square=square,
            person=person,
        )

    def __call__(
        self,
        images: ImageInput | Sequence[ImageInput],
        *,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> ImageBatch:
        """A batch of one image or of a list of them; see `open_image` for what may be one, and for the arguments.

        A four-dimensional array is a list of arrays.  Images that end up in different sizes need a family that pads.
        """
        given = _as_list(images)
        done: list[np.ndarray] = []
        sizes: list[tuple[int, int]] = []
        grids: list[tuple[int, int]] = []
        for i, image in enumerate(given):
            name = "image" if len(given) == 1 else f"image {i} of {len(given)}"
            opened = open_image(image, data_format=data_format, max_pixels=max_pixels, name=name)
            sizes.append((opened.height, opened.width))
            if self.square is not None:
                tiles, grid = [self.square(opened, name, max_pixels)], (0, 0)
            elif self.tiling is not None:
                tiles, grid = self.tiling.cut(opened, self.resample, name, max_pixels)
            else:
                crops, grid = ([], (0, 0)) if self.crops is None else self.crops.crop(opened, name)
                tiles = [self._resize(one, name, max_pixels) for one in (opened, *crops)]
            done += tiles
            grids.append(grid)

        extents = [image.shape[:2] for image in done]
        height, width = max(h for h, _ in extents), max(w for _, w in extents)
        if not self.pad and len(set(extents)) > 1:
            other = next(extent for extent in extents if extent != extents[0])
            raise InputError(
                f"the images end up in different sizes ({extents[0]} and {other}, height and width) and "
                "the processor does not pad: pass them one by one"
            )
        if self.pad_size is not None:
            if height > self.pad_size[0] or width > self.pad_size[1]:
                raise InputError(f"an image of {height} x {width} does not fit into pad_size = {self.pad_size}")
            height, width = self.pad_size

        pixel_values = np.empty((len(done), height, width, 3), np.float32)
        pixel_mask = np.zeros((len(done), height, width), bool) if self.mask else None
        for b, (image, (h, w)) in enumerate(zip(done, extents, strict=True)):
            if self.square is not None:
                pixel_values[b] = image
                continue
            _look_up(self.table, image[..., ::-1] if self.blue_first else image, pixel_values[b, :h, :w])
            pixel_values[b, h:] = 0
            pixel_values[b, :h, w:] = 0
            if pixel_mask is not None:
                pixel_mask[b, :h, :w] = True
        return ImageBatch(pixel_values, pixel_mask, sizes, grids)

    def of_boxes(self, image: Image.Image, boxes: np.ndarray) -> np.ndarray:
        """The images (P, H, W, 3) float32 of P boxes (P, 4) in an image, for a processor with `person`."""
        if self.person is None:
            raise InputError(f"boxes are given, but the {self.family}ImageProcessor reads whole images")
        found = np.empty((len(boxes), *self.person.size, 3), np.float32)
        for i, box in enumerate(boxes):
            _look_up(self.table, self.person(image, box), found[i])
        return found

    def with_size(self, size: Mapping[str, int]) -> ImageProcessor:
        """A copy of the processor with another `size`, such as {"longest_edge": 1000}; `sizes.RULES` has the forms."""
        if self.size is None:
            raise InputError(f"size is {size!r}, but this processor does not resize")
        if not isinstance(size, Mapping):
            raise InputError(f"size is {size!r}, expected edges by name, such as {{'longest_edge': 1000}}")
        return replace(self, size=read_size(dict(size), None, square=True))

    def with_pixel_bounds(self, bounds: Mapping[str, int]) -> ImageProcessor:
        """A copy of a processor that resizes to a number of pixels, with other `min_pixels` or `max_pixels`."""
        given = " and ".join(f"{key} = {value!r}" for key, value in bounds.items())
        if self.size is None or "min_pixels" not in self.size:
            fixed = f"the {self.family}ImageProcessor makes images of its own size: leave it out, or resize the image"
            raise InputError(f": {given}, but {fixed}", argument="image")
        size = {**self.size, **bounds}
        try:
            size = read_size(size, None, square=True)
        except ConfigError as e:
            raise InputError(f": {given}: {e}", argument="image") from None
        if size["min_pixels"] > size["max_pixels"]:
            raise InputError(f": {given}: min_pixels {size['min_pixels']} is above max_pixels", argument="image")
        return replace(self, size=size)

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) of an image of that size after resizing and cropping, before padding."""
        if self.crop is not None:
            return self.crop
        for step in (self.fit, self.square, self.person):
            if step is not None:
                return step.size
        return (height, width) if self.size is None else resized_shape(self.size, height, width)

    def _resize(self, image: Image.Image, name: str, max_pixels: int) -> np.ndarray:
        """(h, w, 3) uint8, or float32 where it does not round: resized and cropped."""
        from PIL.Image import Resampling, fromarray

        if self.fit is not None:
            return self.fit(image, self.resample, name, max_pixels)
        if self.person is not None:
            return self.person(image)
        if self.size is not None:
            height, width = resized_shape(self.size, image.height, image.width)
            if not height or not width:
                narrow = f": {image.height} x {image.width} is too narrow to be resized to {self.size}"
                raise InputError(narrow, argument=name)
            if height * width > max_pixels:
                what = f": {image.height} x {image.width} would be resized to {height} x {width}"
                raise InputError(f"{what}, more than {max_pixels} pixels", argument=name)
            if not self.antialias and not self.rounds:
                levels = np.asarray(image)[None].astype(np.float32)
                return on_numpy.interpolate(levels, (height, width), TORCH_MODES[self.resample])[0]
            if not self.antialias:
                return _interpolate(np.asarray(image), (height, width), TORCH_MODES[self.resample])
            wide = min(width, max(1, round(image.width * height / image.height))) if self.pad_line else width
            image = image.resize((wide, height), Resampling(self.resample))
            if wide < width:
                image = fromarray(on_paper(np.asarray(image), width))
        if self.crop is not None:
            height, width = self.crop
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return np.asarray(image)


def _interpolate(image: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    """An image (h, w, 3) uint8 in another size, by its nearest pixels alone, along rows and then along columns.

    Within a grey level of torch's for bytes, which rounds to bytes between the two as well.
    """
    for step in ((image.shape[0], size[1]), size):
        values = on_numpy.interpolate(image[None].astype(np.float32), step, mode)[0]
        image = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return image


def on_paper(line: np.ndarray, width: int) -> np.ndarray:
    """The line (h, w, 3) at the left of a picture of that width, on paper as its edges mostly are."""
    edges = np.concatenate([line[0], line[-1], line[:, -1]])
    out = np.empty((len(line), width, 3), np.uint8)
    out[:] = np.median(edges, 0).astype(np.uint8)
    out[:, : line.shape[1]] = line
    return out


def _as_list(images: Any) -> list[Any]:
    if isinstance(images, np.ndarray) and images.ndim == 4:
        images = list(images)
    if not isinstance(images, (list, tuple)):
        return [images]
    if not images:
        raise InputError("images is empty, expected at least one image")
    return list(images)


def _look_up(table: np.ndarray, image: np.ndarray, out: np.ndarray) -> None:
    """out[h, w, c] = table[image[h, w, c], c], in strips that stay in the cache.

    A float image's levels are between those of the table, whose values are in a line.
    """
    if image.dtype != np.uint8:
        np.multiply(image, (table[255] - table[0]) / np.float32(255), out=out)
        out += table[0]
        return
    alike = (table == table[:, :1]).all()
    flat = np.ascontiguousarray(table[:, 0]) if alike else table.T.reshape(-1)
    offsets = np.arange(3, dtype=np.intp) * (0 if alike else 256)
    for top in range(0, len(image), 16):
        np.take(flat, image[top : top + 16] + offsets, out=out[top : top + 16], mode="clip")
