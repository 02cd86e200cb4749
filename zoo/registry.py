"""The table of families, one row for each.  A family is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from .errors import ConfigError, UnsupportedError, nearest

if TYPE_CHECKING:
    from .config import Config
    from .pretrained import Pretrained

# The end of a class's name -> the task that such a checkpoint was trained for.  Other heads (ForMultipleChoice,
# ForMaskedImageModeling, Backbone, ...) have a model and no task.
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
    "ForConditionalGeneration": "text2text-generation",
}
# Heads with these words in their names are those of models of images.
_OF_IMAGES = ("Image", "Segmentation", "ObjectDetection", "Backbone")


@dataclass(frozen=True, kw_only=True)
class Family:
    """A row of the table.  The first three fields are required; the others have a default that mostly fits.

    module: the package with `<prefix>Config` and, for each head, the class `<prefix><head>`.
    prefix: the beginning of its classes' names, here as in transformers: "Bert".
    heads: the ends of these names: "Model", "ForMaskedLM", ...  If a task has several heads, it loads the checkpoint's
        own, or else the first of them.
    tasks: head -> the task that its checkpoints were trained for (None: none), if not the one in TASK_OF_HEAD.
    losses: head -> the name of its loss in zoo/apps/train/losses.py (None: none), if not the one in LOSS_OF_HEAD there.
    reads: "text", "image", or "both" for an encoder of images with a decoder or an encoder of texts.  By default
        "image" if one of the heads is one of images, else "text".
    processor: transformers' class of image processors, for checkpoints whose preprocessor_config.json names none.
    names: head -> the name of its class in transformers, if it is not `<prefix><head>`.
    classes: the prefix of another family in `module`, whose classes serve this family's config too: "Roberta".
    stages: the stages that parity compares, as paths in transformers' bare model (`base_model`): name of the stage ->
        path of the module whose output it is, or of a list of modules, each of which is a stage (layer.0, ...).
        By default {"layer": P}, P the path of the one list that is as long as the model has layers.  The stage
        "embeddings" is the first layer's input unless the row has a path for it; so are, beside the stages
        "encoder.layer" and "decoder.layer", "encoder.embeddings" and "decoder.embeddings".  In a class that has one of
        these parts alone its stages have no prefix.
    """

    module: str
    prefix: str
    heads: tuple[str, ...]
    tasks: Mapping[str, str | None] = field(default_factory=dict)
    losses: Mapping[str, str | None] = field(default_factory=dict)
    reads: Literal["text", "image", "both"] | None = None
    processor: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    classes: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_images(self) -> bool:
        """True if a checkpoint comes with an image processor."""
        if self.reads is None:
            return any(word in head for head in self.heads for word in _OF_IMAGES)
        return self.reads != "text"

    @property
    def reads_texts(self) -> bool:
        """True if a checkpoint comes with a tokenizer."""
        return self.reads == "both" or not self.reads_images

    @property
    def is_decoder(self) -> bool:
        """True if all its models are decoders, which continue a text."""
        return bool(self.heads_for("generate")) and not self.reads_images and not self.heads_for("fill-mask")

    @property
    def image_sizes(self) -> Literal["any", "asked", "own"]:
        """The sizes of images that the models take.

        "any"; "asked", which is any with `interpolate_pos_encoding=True`; or "own", the config's image_size.
        """
        cls = self.load(self.heads[0])
        if getattr(cls, "any_size", False):
            return "any"
        return "asked" if "interpolate_pos_encoding" in getattr(cls, "inputs", ()) else "own"

    @property
    def architectures(self) -> tuple[str, ...]:
        """The names of its models in config.json and in transformers."""
        return tuple(map(self.architecture, self.heads))

    def architecture(self, head: str) -> str:
        """The name of a head's class in config.json and in transformers."""
        return self.names.get(head, self.prefix + head)

    def head(self, architecture: str) -> str | None:
        """The head of a class by its name in transformers; None if the family does not have it."""
        return next((head for head in self.heads if self.architecture(head) == architecture), None)

    def load(self, name: str) -> Any:
        """The class of a head, or of "Config"."""
        wanted = self.classes + name if self.classes and name != "Config" else self.architecture(name)
        return getattr(importlib.import_module(self.module), wanted)

    def head_of(self, architectures: Iterable[str]) -> str | None:
        """The head of the first of a config's `architectures` that the family has; "Model" if the config has none."""
        return next(filter(None, map(self.head, architectures)), None) if architectures else "Model"

    def task_of(self, head: str) -> str | None:
        """The task that a head's checkpoints were trained for, or None if zoo does not have it."""
        return self.tasks[head] if head in self.tasks else TASK_OF_HEAD.get(head)

    def heads_for(self, task: str) -> tuple[str, ...]:
        """The heads of a task."""
        return tuple(head for head in self.heads if self.task_of(head) == task)


_TEXT = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
_DECODER = ("Model", "ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_IMAGE = ("Model", "ForImageClassification", "ForMaskedImageModeling")
_T5 = Family(
    module="zoo.models.t5",
    prefix="T5",
    heads=(
        "ForConditionalGeneration",
        "EncoderModel",
        "ForSequenceClassification",
        "ForTokenClassification",
        "ForQuestionAnswering",
    ),
    tasks={"EncoderModel": "embed"},
    stages={"encoder.layer": "encoder.block", "decoder.layer": "decoder.block"},
)


_RT_DETR = Family(
    module="zoo.models.rt_detr_v2",
    prefix="RTDetrV2",
    heads=("ForObjectDetection",),
    losses={"ForObjectDetection": None},
    processor="RTDetrImageProcessor",
    stages={"features": "backbone", "encoder.layer": "encoder.aifi", "decoder.layer": "decoder.layers"},
)


def _two_towers(module: str, prefix: str) -> Family:
    """The row of an encoder of images and one of texts."""
    return Family(
        module=f"zoo.models.{module}",
        prefix=prefix,
        heads=("Model", "ForImageClassification"),
        tasks={"Model": "zero-shot-image-classification"},
        losses={"Model": "pairs"},
        reads="both",
        processor=f"{prefix}ImageProcessor",
        stages={f"{part}_model.layer": f"{part}_model.encoder.layers" for part in ("vision", "text")},
    )


# model_type of files with code of their own -> the family of the same architecture, and a checkpoint in its form.
NATIVE: dict[str, tuple[str, str]] = {
    "new": ("gte", "alibaba-nlp-community/gte-multilingual-base"),
    "Yi": ("llama", "01-ai/Yi-1.5-6B"),
}

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
    "electra": Family(
        module="zoo.models.electra",
        prefix="Electra",
        heads=(*_TEXT, "ForCausalLM", "ForPreTraining"),
        tasks={"ForPreTraining": None},
        losses={"ForPreTraining": "replaced tokens"},
    ),
    "nomic_bert": Family(module="zoo.models.nomic_bert", prefix="NomicBert", heads=_TEXT[:4]),
    "gte": Family(module="zoo.models.gte", prefix="Gte", heads=_TEXT[:4]),
    "mpnet": Family(module="zoo.models.mpnet", prefix="MPNet", heads=_TEXT),
    "modernbert": Family(module="zoo.models.modernbert", prefix="ModernBert", heads=_TEXT),
    "deberta-v2": Family(module="zoo.models.deberta_v2", prefix="DebertaV2", heads=_TEXT),
    "distilbert": Family(module="zoo.models.distilbert", prefix="DistilBert", heads=_TEXT),
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
    "dinov2": Family(
        module="zoo.models.dinov2",
        prefix="Dinov2",
        heads=("Model", "ForImageClassification"),
        processor="BitImageProcessor",
    ),
    "convnext": Family(
        module="zoo.models.convnext",
        prefix="ConvNext",
        heads=("Model", "ForImageClassification"),
        processor="ConvNextImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "segformer": Family(
        module="zoo.models.segformer",
        prefix="Segformer",
        heads=("Model", "ForSemanticSegmentation", "ForImageClassification"),
        tasks={"Model": None},
        processor="SegformerImageProcessor",
        stages={"layer": "stages"},
    ),
    "swin": Family(
        module="zoo.models.swin",
        prefix="Swin",
        heads=_IMAGE,
        processor="ViTImageProcessor",
        stages={"layer": "encoder.layers"},
    ),
    "clip": _two_towers("clip", "CLIP"),
    "clip_text_model": Family(
        module="zoo.models.clip",
        prefix="CLIPText",
        heads=("Model", "ModelWithProjection"),
        tasks={"ModelWithProjection": "embed"},
    ),
    "clip_vision_model": Family(
        module="zoo.models.clip",
        prefix="CLIPVision",
        heads=("Model", "ModelWithProjection"),
        tasks={"ModelWithProjection": "embed"},
        reads="image",
        processor="CLIPImageProcessor",
    ),
    "siglip": _two_towers("siglip", "Siglip"),
    "siglip_text_model": Family(module="zoo.models.siglip", prefix="SiglipText", heads=("Model",)),
    "siglip_vision_model": Family(
        module="zoo.models.siglip",
        prefix="SiglipVision",
        heads=("Model",),
        reads="image",
        processor="SiglipImageProcessor",
    ),
    "dinov3_vit": Family(
        module="zoo.models.dinov3_vit",
        prefix="DINOv3ViT",
        heads=("Model",),
        reads="image",
        processor="DINOv3ViTImageProcessor",
    ),
    "gemma3_text": Family(
        module="zoo.models.gemma3",
        prefix="Gemma3Text",
        heads=("Model", "ForCausalLM", "ForSequenceClassification"),
        names={"ForCausalLM": "Gemma3ForCausalLM"},
    ),
    "gpt2": Family(
        module="zoo.models.gpt2",
        prefix="GPT2",
        heads=("Model", "LMHeadModel", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
    ),
    "llama": Family(module="zoo.models.llama3", prefix="Llama", heads=_DECODER),
    "mistral": Family(module="zoo.models.mistral", prefix="Mistral", classes="Llama", heads=_DECODER),
    "olmo2": Family(module="zoo.models.olmo2", prefix="Olmo2", heads=_DECODER[:3]),
    "phi3": Family(module="zoo.models.phi3", prefix="Phi3", heads=_DECODER[:4]),
    "qwen2": Family(module="zoo.models.qwen2", prefix="Qwen2", classes="Llama", heads=_DECODER),
    "qwen3": Family(module="zoo.models.qwen3", prefix="Qwen3", heads=_DECODER),
    "qwen3_moe": Family(module="zoo.models.qwen3_moe", prefix="Qwen3Moe", heads=_DECODER),
    "starcoder2": Family(module="zoo.models.starcoder2", prefix="Starcoder2", heads=_DECODER[:4]),
    "smollm3": Family(module="zoo.models.smollm3", prefix="SmolLM3", classes="Llama", heads=_DECODER),
    "detr": Family(
        module="zoo.models.detr",
        prefix="Detr",
        heads=("Model", "ForObjectDetection"),
        tasks={"Model": None},
        processor="DetrImageProcessor",
        stages={
            "features": "backbone",
            "positions": "position_embedding",
            "encoder.layer": "encoder.layers",
            "decoder.layer": "decoder.layers",
        },
    ),
    "rt_detr_v2": _RT_DETR,
    "rt_detr": replace(_RT_DETR, prefix="RTDetr", classes="RTDetrV2"),
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
        losses={"Model": "written text"},
        reads="both",
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.model.decoder.layers"},
    ),
    "t5": _T5,
    "mt5": replace(_T5, prefix="MT5", classes="T5"),
    "bart": Family(
        module="zoo.models.bart",
        prefix="Bart",
        heads=("ForConditionalGeneration", "Model", "ForSequenceClassification", "ForQuestionAnswering"),
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "marian": Family(
        module="zoo.models.bart",
        prefix="Marian",
        heads=("MTModel",),
        tasks={"MTModel": "translation"},
        losses={"MTModel": "written text"},
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "whisper": Family(
        module="zoo.models.whisper",
        prefix="Whisper",
        heads=("ForConditionalGeneration",),
        tasks={"ForConditionalGeneration": "automatic-speech-recognition"},
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "trocr": Family(
        module="zoo.models.trocr",
        prefix="TrOCR",
        heads=("ForCausalLM",),
        tasks={"ForCausalLM": None},
        losses={"ForCausalLM": "tokens"},  # labels are shifted already
        stages={"layer": "decoder.layers"},
    ),
}


def own_code(auto_map: Any) -> str:
    """The sentence on a config.json's `auto_map`, which names Python files that come with a checkpoint."""
    if not isinstance(auto_map, dict) or not auto_map:
        return ""
    names = ", ".join(str(name[0] if isinstance(name, list) else name) for name in auto_map.values())
    return f"; the checkpoint brings code of its own ({names:.200}), which zoo does not run"


def family_of(model_type: Any, auto_map: Any = None) -> Family:
    """The row of a config.json's `model_type`; ConfigError without one, UnsupportedError if zoo does not have it."""
    code = own_code(auto_map)
    if not isinstance(model_type, str) or not model_type:
        raise ConfigError(f"config.json has no model_type, which says what family the checkpoint belongs to{code}")
    if model_type in NATIVE:
        native, example = NATIVE[model_type]
        raise UnsupportedError(
            f"model_type {model_type!r} is not one that zoo has{code}: the same architecture is {native!r} in "
            f"transformers and in zoo, with other names, as in {example}"
        )
    if model_type not in FAMILIES:
        guess = nearest(model_type, FAMILIES)
        raise UnsupportedError(
            f"model_type {model_type!r} is not one that zoo has ({', '.join(FAMILIES)}){guess}{code}; "
            "docs/adding-a-model.md shows how to add a family"
        )
    return FAMILIES[model_type]


def architectures() -> dict[str, str]:
    """The class names that a checkpoint's `architectures` may have -> their model_type."""
    return {name: model_type for model_type, family in FAMILIES.items() for name in family.architectures}


def architecture_of(cls: type, model_type: str) -> str:
    """The name that a checkpoint's `architectures` has for a class: its own, or the family's that borrows the class."""
    family = FAMILIES.get(model_type)
    if family is None or not family.classes or not cls.__name__.startswith(family.classes):
        return cls.__name__
    return family.architecture(cls.__name__.removeprefix(family.classes))


def config_class(model_type: Any, auto_map: Any = None) -> type[Config]:
    """The config class of a family; auto_map: config.json's, for the error if there is none."""
    return family_of(model_type, auto_map).load("Config")


def _part(config: Config, architecture: str) -> type[Pretrained] | None:
    """The class of a part of a config's model by its name in transformers: "CLIPTextModel"."""
    model_type = architectures().get(architecture)
    family = None if model_type is None else FAMILIES[model_type]
    if family is None or family.load("Config") not in config.part_classes.values():
        return None
    return family.load(family.head(architecture) or "Model")


def model_class(config: Config, head: str | None = None) -> type[Pretrained]:
    """The class of a config's `architectures`, or of its family's `head` ("ForMaskedLM", ...)."""
    family = family_of(config.model_type)
    if head is not None:
        if head not in family.heads and (part := _part(config, family.architecture(head))) is not None:
            return part
        if head not in family.heads:
            known = ", ".join(family.architectures)
            raise UnsupportedError(f"{config.model_type} has no {family.architecture(head)}, only {known}")
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
        f"of {config.model_type} it has {', '.join(family.architectures)}{own_code(config.extra.get('auto_map'))}"
    )
