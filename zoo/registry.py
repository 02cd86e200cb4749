"""What zoo knows of each family outside of its folder: one row.  A family is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .errors import ConfigError, UnsupportedError, nearest

if TYPE_CHECKING:
    from .config import Config
    from .pretrained import Pretrained

# What follows the family's name in a class's -> the task that such a checkpoint was trained for.  The other heads that
# transformers has (ForMultipleChoice, ForMaskedImageModeling, Backbone, ...) have a model and no task.
TASK_OF_HEAD: dict[str, str] = {
    "Model": "embed",
    "ForMaskedLM": "fill-mask",
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
    "ForCausalLM": "generate",
    "LMHeadModel": "generate",
    "ForImageClassification": "classify",
    "ForImageClassificationWithTeacher": "classify",
    "ForSemanticSegmentation": "segment",
    "ForObjectDetection": "detect",
}
# What is in the name of a head that only models of images have.
_OF_IMAGES = ("Image", "Segmentation", "ObjectDetection", "Backbone")


@dataclass(frozen=True, kw_only=True)
class Family:
    """One row: all that is known of a family outside of its folder.

    The first three are always said, the others where what follows from the facts would be wrong.

    module: the package that has `<prefix>Config` and, for each head, the class `<prefix><head>`.
    prefix: what the names of its classes begin with, here as in transformers: "Bert".
    heads: how they go on, "Model" among them: "ForMaskedLM", "ForImageClassification", ...  Where several are of one
        task, that task loads the checkpoint's own, or else the first of them.
    tasks: of a head, the task that its checkpoints were trained for (None: none), if not as TASK_OF_HEAD says.
    losses: of a head, the name of its loss in zoo/apps/train/losses.py, if not as LOSS_OF_HEAD says there.
    reads: "text", "image", or "both" for an encoder of images whose decoder goes on from a text.  By default "image" if
        one of the heads is only to be had for images, else "text".
    processor: of a family that reads images, the class of transformers that its images are prepared by, where the
        checkpoint's preprocessor_config.json names none: "ViTImageProcessor".
    classes: the prefix of another family whose classes its models are, with this family's config: "Roberta".
    stages: where the stages are that parity compares, as paths in transformers' bare model (`base_model`): name of the
        stage -> path of the module whose output it is, or of the list of modules, each of which is a stage (layer.0,
        layer.1, ...).  By default {"layer": P}, P the path of the one list that is as long as the model has layers.
        The stage "embeddings" is what goes into the first layer, where the row says no path for it; and of an encoder
        and a decoder, with "encoder.layer" and "decoder.layer" among the stages, "encoder.embeddings" and
        "decoder.embeddings" likewise.
    """

    module: str
    prefix: str
    heads: tuple[str, ...]
    tasks: Mapping[str, str | None] = field(default_factory=dict)
    losses: Mapping[str, str] = field(default_factory=dict)
    reads: Literal["text", "image", "both"] | None = None
    processor: str | None = None
    classes: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_images(self) -> bool:
        """Whether a checkpoint comes with an image processor."""
        if self.reads is None:
            return any(word in head for head in self.heads for word in _OF_IMAGES)
        return self.reads != "text"

    @property
    def reads_texts(self) -> bool:
        """Whether a checkpoint comes with a tokenizer."""
        return self.reads == "both" or not self.reads_images

    @property
    def is_decoder(self) -> bool:
        """Whether all its models are decoders, which continue a text."""
        return bool(self.heads_for("generate")) and not self.reads_images and not self.heads_for("fill-mask")

    @property
    def image_sizes(self) -> Literal["any", "asked", "own"]:
        """Which images the models take, as their classes say.

        "any"; "asked", which is any with `interpolate_pos_encoding=True`; or "own", those of the config's image_size.
        """
        cls = self.load(self.heads[0])
        if getattr(cls, "any_size", False):
            return "any"
        return "asked" if "interpolate_pos_encoding" in getattr(cls, "inputs", ()) else "own"

    @property
    def architectures(self) -> tuple[str, ...]:
        """The names of its models in config.json and in transformers."""
        return tuple(self.prefix + head for head in self.heads)

    def load(self, name: str) -> Any:
        """The class of a head, or of "Config"."""
        prefix = self.prefix if name == "Config" else self.classes or self.prefix
        return getattr(importlib.import_module(self.module), prefix + name)

    def head_of(self, architectures: Iterable[str]) -> str | None:
        """The first of a config's `architectures` that the family has, as a head; "Model" where there are none."""
        named = [name.removeprefix(self.prefix) for name in architectures if name.startswith(self.prefix)]
        return next((head for head in named if head in self.heads), None) if architectures else "Model"

    def task_of(self, head: str) -> str | None:
        """The task that a head's checkpoints were trained for, if that is one of zoo's."""
        return self.tasks[head] if head in self.tasks else TASK_OF_HEAD.get(head)

    def heads_for(self, task: str) -> tuple[str, ...]:
        """The heads that do a task."""
        return tuple(head for head in self.heads if self.task_of(head) == task)


_TEXT = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
_IMAGE = ("Model", "ForImageClassification", "ForMaskedImageModeling")

# model_type in config.json -> the row.
FAMILIES: dict[str, Family] = {
    "bert": Family(
        module="zoo.models.bert",
        prefix="Bert",
        heads=(*_TEXT, "ForPreTraining", "ForNextSentencePrediction", "LMHeadModel"),
        tasks={"ForPreTraining": "fill-mask"},
    ),
    "roberta": Family(module="zoo.models.roberta", prefix="Roberta", heads=(*_TEXT, "ForCausalLM")),
    "xlm-roberta": Family(
        module="zoo.models.roberta", prefix="XLMRoberta", classes="Roberta", heads=(*_TEXT, "ForCausalLM")
    ),
    "vit": Family(module="zoo.models.vit", prefix="ViT", heads=_IMAGE, processor="ViTImageProcessor"),
    "deit": Family(
        module="zoo.models.vit",
        prefix="DeiT",
        heads=(*_IMAGE, "ForImageClassificationWithTeacher"),
        processor="DeiTImageProcessor",
    ),
    "beit": Family(
        module="zoo.models.beit",
        prefix="Beit",
        heads=(*_IMAGE, "ForSemanticSegmentation", "Backbone"),
        losses={"ForMaskedImageModeling": "visual tokens"},
        processor="BeitImageProcessor",
    ),
    "llama": Family(
        module="zoo.models.llama3",
        prefix="Llama",
        heads=("Model", "ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
    ),
    "table-transformer": Family(
        module="zoo.models.table_transformer",
        prefix="TableTransformer",
        heads=("Model", "ForObjectDetection"),
        tasks={"Model": None},
        processor="DetrImageProcessor",
        stages={
            "features": "backbone.conv_encoder",
            "positions": "backbone.position_embedding",
            "encoder.layer": "encoder.layers",
            "decoder.layer": "decoder.layers",
        },
    ),
    "vision-encoder-decoder": Family(
        module="zoo.models.trocr",
        prefix="VisionEncoderDecoder",
        heads=("Model",),
        tasks={"Model": "read"},
        losses={"Model": "text of an image"},
        reads="both",
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.model.decoder.layers"},
    ),
    "trocr": Family(
        module="zoo.models.trocr",
        prefix="TrOCR",
        heads=("ForCausalLM",),
        tasks={"ForCausalLM": None},
        losses={"ForCausalLM": "tokens"},  # what it is given has been shifted
        stages={"layer": "decoder.layers"},
    ),
}


def family_of(model_type: Any) -> Family:
    """The row of a config.json's `model_type`; ConfigError where it says none, UnsupportedError where zoo has none."""
    if not isinstance(model_type, str) or not model_type:
        raise ConfigError("config.json has no model_type, which says what family the checkpoint belongs to")
    if model_type == "detr":
        raise UnsupportedError(
            "model_type 'detr' is not one that zoo has: DETR norms after each part of a layer, 'table-transformer' "
            "before it and after the whole encoder, so that neither can stand for the other"
        )
    if model_type not in FAMILIES:
        guess = nearest(model_type, FAMILIES)
        raise UnsupportedError(f"model_type {model_type!r} is not one that zoo has ({', '.join(FAMILIES)}){guess}")
    return FAMILIES[model_type]


def architectures() -> dict[str, str]:
    """Every class name that a checkpoint may ask for, and its model_type."""
    return {name: model_type for model_type, family in FAMILIES.items() for name in family.architectures}


def architecture_of(cls: type, model_type: str) -> str:
    """The name that a checkpoint's `architectures` has for a class: its own, or the family's that borrows the class."""
    family = FAMILIES.get(model_type)
    if family is None or not family.classes or not cls.__name__.startswith(family.classes):
        return cls.__name__
    return family.prefix + cls.__name__.removeprefix(family.classes)


def config_class(model_type: Any) -> type[Config]:
    """The config class of a family."""
    return family_of(model_type).load("Config")


def model_class(config: Config, head: str | None = None) -> type[Pretrained]:
    """The class that a config's `architectures` names; with `head` ("ForMaskedLM", ...), its family's of that kind."""
    family = family_of(config.model_type)
    if head is not None:
        if head not in family.heads:
            known = ", ".join(family.architectures)
            raise UnsupportedError(f"{config.model_type} has no {family.prefix}{head}, only {known}")
        return family.load(head)
    found = family.head_of(config.architectures)
    if found is not None:
        return model_class(config, found)
    wanted = config.architectures[0]
    kind = architectures().get(wanted)
    if kind is not None:
        raise ConfigError(
            f"the architecture {wanted!r} is of the family {kind}, but model_type is {config.model_type!r}"
        )
    guess = nearest(wanted, architectures())
    raise UnsupportedError(
        f"config.json asks for the architecture {wanted!r}, which zoo does not have{guess}; "
        f"of {config.model_type} it has {', '.join(family.architectures)}"
    )
