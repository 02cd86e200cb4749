"""The classes that a checkpoint's `model_type` and `architectures` mean; a family is imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from .config import Config
from .errors import ConfigError, UnsupportedError, nearest
from .pretrained import Pretrained


class Family(NamedTuple):
    module: str
    prefix: str  # what its class names begin with
    heads: tuple[str, ...]  # how they go on

    def load(self, name: str) -> Any:
        return getattr(importlib.import_module(self.module), self.prefix + name)


HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
BERT_HEADS = (*HEADS, "ForPreTraining", "ForNextSentencePrediction", "LMHeadModel")
LLAMA_HEADS = ("Model", "ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
IMAGE_HEADS = ("Model", "ForImageClassification", "ForMaskedImageModeling")

FAMILIES = {
    "bert": Family("zoo.models.bert", "Bert", BERT_HEADS),
    "roberta": Family("zoo.models.roberta", "Roberta", (*HEADS, "ForCausalLM")),
    "xlm-roberta": Family("zoo.models.roberta", "XLMRoberta", (*HEADS, "ForCausalLM")),
    "vit": Family("zoo.models.vit", "ViT", IMAGE_HEADS),
    "deit": Family("zoo.models.vit", "DeiT", (*IMAGE_HEADS, "ForImageClassificationWithTeacher")),
    "beit": Family("zoo.models.beit", "Beit", (*IMAGE_HEADS, "ForSemanticSegmentation", "Backbone")),
    "llama": Family("zoo.models.llama3", "Llama", LLAMA_HEADS),
    "table-transformer": Family("zoo.models.table_transformer", "TableTransformer", ("Model", "ForObjectDetection")),
    "vision-encoder-decoder": Family("zoo.models.trocr", "VisionEncoderDecoder", ("Model",)),
    "trocr": Family("zoo.models.trocr", "TrOCR", ("ForCausalLM",)),
}


def architectures() -> dict[str, str]:
    """Every class name that a checkpoint may ask for, and its model_type."""
    return {family.prefix + head: kind for kind, family in FAMILIES.items() for head in family.heads}


def config_class(model_type: Any) -> type[Config]:
    """The config class of a family."""
    return _family(model_type).load("Config")


def model_class(config: Config, head: str | None = None) -> type[Pretrained]:
    """The class that a config's `architectures` names; with `head` ("ForMaskedLM", ...), its family's of that kind."""
    family = _family(config.model_type)
    if head is not None:
        if head not in family.heads:
            known = ", ".join(family.prefix + h for h in family.heads)
            raise UnsupportedError(f"{config.model_type} has no {family.prefix}{head}, only {known}")
        return family.load(head)
    wanted = config.architectures or (family.prefix + "Model",)
    for name in wanted:
        if name.startswith(family.prefix) and name.removeprefix(family.prefix) in family.heads:
            return family.load(name.removeprefix(family.prefix))
    kind = architectures().get(wanted[0])
    if kind is not None:
        raise ConfigError(
            f"the architecture {wanted[0]!r} is of the family {kind}, but model_type is {config.model_type!r}"
        )
    guess = nearest(wanted[0], architectures())
    raise UnsupportedError(f"config.json asks for the architecture {wanted[0]!r}, which zoo does not have{guess}")


def _family(model_type: Any) -> Family:
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
