"""The base of every spec: the description of one kind of checkpoint, and what parity does differently for its family.

A family is added to parity by a module in this folder that defines SPECS, a dict from names to specs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from zoo.registry import FAMILIES

from ..vocabularies import WRITERS, write_json

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor
    from zoo.images.boxes import Detection

POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_encoder_position_embeddings")
Size = Literal["tiny", "full"]
Loaded = tuple[Any, dict[str, Any]]  # a model, and the names that from_pretrained says were missing or not expected


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A checkpoint in the layout of a real one, with random weights.

    The tensors are those that the class `architecture` reads.  The other fields say where the file differs from that.

    like: the hub repository whose layout it has, or "save_pretrained" for what transformers itself writes.
    config: the values of config.json besides architectures and model_type.  tiny: the ones to replace at tiny size.
    full: whether `--all --full` runs it at full size; one checkpoint of each family that is on the hub.
    tokenizer: a key of vocabularies.WRITERS.  reserved: positions that no token has, such as RoBERTa's first two.
    processor: preprocessor_config.json at full size.
    pooling: for a sentence encoder, "mean" or "cls".
    pooler: whether the file has one, also where the class needs none.  unused: parts of names of other tensors of the
    base model that the class may not need.  also: other heads whose tensors are in the file.
    absent: ends of names of optional tensors that the file does not have.
    untied: whether the file repeats arrays that are shared.
    inert: regular expressions for tensors that change no output.
    gains: factors for the weights of modules, by the end of their names, or for tensors by the end of theirs.
    massive: the layer from which on one channel is hundreds of times larger than the others.
    format: "safetensors", "sharded", "bin" (zip), "stream" (torch before 1.6).  dtype: a safetensors name.
    """

    not_compared: ClassVar[tuple[str, ...]] = ()  # outputs that transformers or zoo does not give
    square: ClassVar[bool] = False  # whether transformers takes square images alone, and zoo others too
    masks_states: ClassVar[bool] = True  # whether its decoder takes a mask of the states that it is given

    like: str
    model_type: str
    architecture: str
    config: Mapping[str, Any] = field(default_factory=dict)
    tiny: Mapping[str, Any] = field(default_factory=dict)
    full: bool = False
    tokenizer: str | None = None
    reserved: int = 0
    processor: Mapping[str, Any] = field(default_factory=dict)
    pooling: str | None = None
    pooler: bool = False
    unused: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    untied: bool = False
    inert: tuple[str, ...] = (r"\.(key|k|k_proj|k_lin)\.bias$",)  # the same for every key, which softmax ignores
    gains: Mapping[str, float] = field(default_factory=dict)
    massive: int | None = None
    format: str = "safetensors"
    dtype: str = "F32"

    @property
    def model_class(self) -> Any:
        """The class of `architecture`."""
        family = FAMILIES[self.model_type]
        return family.load(family.head(self.architecture) or self.architecture)

    @property
    def prefix(self) -> str:
        """The prefix of the base model's tensors in the file."""
        cls = self.model_class
        return "" if cls.is_base_model else cls.name_map.prefix + "."

    def file_name(self, name: str) -> str:
        """The name in the file of a tensor that transformers calls `name`."""
        return name

    def array_in_file(self, name: str, array: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
        """An array of a matrix, or of another tensor, in the shape that files have it in."""
        return array

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Tensors that the file has besides those that a model reads.  names: the latter."""
        for name in names:
            if name.endswith("running_var"):
                yield name.replace("running_var", "num_batches_tracked"), np.array(160000)

    def base_config(self, config: Any) -> tuple[Any, str]:
        """The config of the base model, and the prefix of its tensors: here of the one that may have a pooler."""
        family = FAMILIES[self.model_type]
        return config, family.load("Model").name_map.prefix + "."

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The content of preprocessor_config.json, with sizes that have shrunk as much as image_size has."""
        parts = ((c, c.get("encoder", {}), c.get("vision_config", {})) for c in (self.config, config))
        full, small = (pair(next((c["image_size"] for c in some if "image_size" in c), 1)) for some in parts)

        def shrink(size: Any, axis: int = 0) -> Any:
            if isinstance(size, dict):
                return {name: shrink(value, int(name == "width")) for name, value in size.items()}
            return size * small[axis] // full[axis]

        sizes = {key: shrink(self.processor[key]) for key in ("size", "crop_size") if key in self.processor}
        return {**self.processor, **sizes}

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Write the files besides config and weights."""
        if self.tokenizer is not None:
            texts = config.get("decoder") or config.get("text_config", config)
            positions = next(texts[k] for k in POSITIONS if k in texts)
            WRITERS[self.tokenizer](folder, texts["vocab_size"], positions - self.reserved)
        if self.processor:
            write_json(folder / "preprocessor_config.json", self.processor_of(config))
        if self.pooling:
            write_pooling(folder, self.pooling, config["hidden_size"])

    # What follows is asked of real checkpoints of the family too.

    @staticmethod
    def read_processor(folder: Path) -> ImageProcessor:
        """The image processor of a checkpoint's folder."""
        from zoo.images import ImageProcessor

        return ImageProcessor.from_folder(folder)

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        """Images for which the model is made, the first of a batch; none for those that fit any model."""
        return ()

    @staticmethod
    def seen_features(config: Any, pixel_mask: np.ndarray) -> np.ndarray | None:
        """The features (B, N) of an image's pixels, pixel_mask (B, Y, X), that are compared; None: all of them."""
        return None

    @staticmethod
    def processor_arguments(images: Sequence[Image.Image]) -> dict[str, Any]:
        """What transformers' image processor needs besides the images."""
        return {}

    @staticmethod
    def from_processor(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The output of transformers' image processor, with images as (B, Y, X, C)."""
        return {name: np.moveaxis(a, 1, -1) if a.ndim == 4 else a for name, a in found.items()}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of transformers' model for tensors of these names, images among them (B, Y, X, C)."""
        if "pixel_values" not in given:
            return given
        return {**given, "pixel_values": given["pixel_values"].permute(0, 3, 1, 2)}

    @staticmethod
    def objects(
        config: Any, logits: np.ndarray, boxes: np.ndarray, sizes: list[tuple[int, int]], threshold: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The labels (n,) and boxes (n, 4) that zoo finds in each image of a size (Y, X)."""
        from zoo.images.boxes import post_process_object_detection

        numbers = {i: str(i) for i in config.id2label}  # several may have one name
        most = getattr(config, "max_objects", None)
        return as_arrays(post_process_object_detection(logits, boxes, sizes, numbers, threshold=threshold, most=most))

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The stages of transformers' model as zoo has them, whose patches may be in another order."""
        return found

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """transformers' model and its loading info: missing_keys, unexpected_keys, mismatched_keys."""
        # Eager, since rows without keys differ by back end, and the dtype, since version 5 keeps the file's.
        options = {"attn_implementation": "eager", "local_files_only": True, "output_loading_info": True}
        if {"num_experts", "num_local_experts", "n_routed_experts"} & config.keys():
            options["experts_implementation"] = "eager"  # the other has no float64
        return model_class.from_pretrained(folder, dtype=dtype, **options)


def as_arrays(found: list[list[Detection]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The labels, which are numbers, and the boxes of the objects of each image."""
    return [(np.array([int(o.label) for o in one]), np.array([o.box for o in one])) for one in found]


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def write_pooling(folder: Path, pooling: str, size: int) -> None:
    """Write the files by which sentence-transformers finds its modules."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "sqrt": "mean_sqrt_len_tokens"}
    chosen = {f"pooling_mode_{mode}": pooling == name for name, mode in modes.items()}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, **chosen})


def labels(*names: str, count: int = 0) -> dict[str, Any]:
    """The labels of a config: these, or `count` of them without a meaning."""
    found = names or [f"LABEL_{i}" for i in range(count)]
    return {"id2label": {str(i): name for i, name in enumerate(found)}, "label2id": {n: i for i, n in enumerate(found)}}
