"""The table of families, one row for each.  A family is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, UnsupportedError, nearest
from .family import Family

if TYPE_CHECKING:
    from .config import Config
    from .pretrained import Pretrained

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
        "Model",
    ),
    tasks={"EncoderModel": "embed", "Model": None},
    stages={"encoder.layer": "encoder.block", "decoder.layer": "decoder.block"},
)


_MBART = Family(
    module="zoo.models.mbart",
    prefix="MBart",
    heads=("ForConditionalGeneration", "Model", "ForCausalLM"),
    tasks={"ForConditionalGeneration": "translation", "Model": None, "ForCausalLM": None},
    losses={"ForCausalLM": "tokens"},  # labels are shifted already
    stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
)


_RT_DETR = Family(
    module="zoo.models.rt_detr_v2",
    prefix="RTDetrV2",
    heads=("ForObjectDetection", "Model"),
    tasks={"Model": None},
    losses={"ForObjectDetection": None},
    processor="RTDetrImageProcessor",
    stages={"features": "backbone", "encoder.layer": "encoder.aifi", "decoder.layer": "decoder.layers"},
)


def _pp_doclayout(version: str) -> Family:
    """The row of a PP-DocLayout."""
    return replace(
        _RT_DETR,
        module=f"zoo.models.pp_doclayout_{version.lower()}",
        prefix=f"PPDocLayout{version}",
        heads=("ForObjectDetection",),
        tasks={},
        processor=f"PPDocLayout{version}ImageProcessor",
    )


_IMAGE_TEXT: Any = {
    "heads": ("ForConditionalGeneration", "Model"),
    "tasks": {"ForConditionalGeneration": "image-text-to-text", "Model": None},
    "losses": {"ForConditionalGeneration": None},
    "reads": ("image", "text"),
}
_IDEFICS3 = Family(
    module="zoo.models.idefics3",
    prefix="Idefics3",
    **_IMAGE_TEXT,
    processor="Idefics3ImageProcessor",
    stages={
        "vision_model.layer": "vision_model.encoder.layers",
        "connector": "connector",
        "language_model.layer": "text_model.layers",
    },
)
_GEMMA3 = Family(
    module="zoo.models.gemma3_vision",
    prefix="Gemma3",
    **_IMAGE_TEXT,
    processor="Gemma3ImageProcessor",
    stages={
        "vision_model.layer": "vision_tower.encoder.layers",
        "connector": "multi_modal_projector",
        "language_model.layer": "language_model.layers",
    },
)


_SPEECH: Any = {
    "heads": ("ForCTC", "Model", "ForSequenceClassification"),
    "tasks": {"Model": None, "ForSequenceClassification": "audio-classification"},
    "reads": ("audio",),
    "stages": {"layer": "encoder.layers"},
}


def _qwen_vl(module: str, prefix: str, processor: str = "Qwen2VLImageProcessor") -> Family:
    """The row of a Qwen that looks at images, or of its kin."""
    return Family(
        module=f"zoo.models.{module}",
        prefix=prefix,
        **_IMAGE_TEXT,
        processor=processor,
        stages={
            "vision_model.layer": "visual.blocks",
            "connector": "visual.merger",
            "language_model.layer": "language_model.layers",
        },
    )


def _two_towers(module: str, prefix: str) -> Family:
    """The row of an encoder of images and one of texts."""
    return Family(
        module=f"zoo.models.{module}",
        prefix=prefix,
        heads=("Model", "ForImageClassification"),
        tasks={"Model": "zero-shot-image-classification"},
        losses={"Model": "pairs"},
        reads=("image", "text"),
        processor=f"{prefix}ImageProcessor",
        stages={f"{part}_model.layer": f"{part}_model.encoder.layers" for part in ("vision", "text")},
    )


def _word_detector(module: str, prefix: str) -> Family:
    """The row of such a pair, which also finds objects that texts name."""
    return replace(
        _two_towers(module, prefix),
        heads=("ForObjectDetection", "Model"),
        tasks={"ForObjectDetection": "zero-shot-object-detection", "Model": "zero-shot-image-classification"},
        losses={"ForObjectDetection": None, "Model": "pairs"},
    )


def _phrase_detector(module: str, prefix: str) -> Family:
    """The row of a Grounding DINO."""
    return Family(
        module=f"zoo.models.{module}",
        prefix=prefix,
        heads=("ForObjectDetection", "Model"),
        tasks={"ForObjectDetection": "zero-shot-object-detection", "Model": None},
        losses={"ForObjectDetection": None},
        reads=("image", "text"),
        processor="GroundingDinoImageProcessor",
        stages={"features": "backbone", "encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    )


_CLIP_TEXT = Family(
    module="zoo.models.clip",
    prefix="CLIPText",
    heads=("Model", "ModelWithProjection"),
    tasks={"ModelWithProjection": "embed"},
)
_CLIP_VISION = replace(_CLIP_TEXT, prefix="CLIPVision", reads=("image",), processor="CLIPImageProcessor")


_SAM2 = Family(
    module="zoo.models.sam2",
    prefix="Sam2",
    heads=("Model",),
    tasks={"Model": "mask-generation"},
    reads=("image",),
    processor="Sam2ImageProcessor",
    stages={"layer": "vision_encoder.backbone.blocks"},
)


# model_type of files with code of their own -> the family of the same architecture, and a checkpoint in its form.
NATIVE_TYPES: dict[str, tuple[str, str]] = {
    "GOT": ("got_ocr2", "stepfun-ai/GOT-OCR-2.0-hf"),
    "internvl_chat": ("internvl", "OpenGVLab/InternVL3-1B-hf"),
    "new": ("gte", "alibaba-nlp-community/gte-multilingual-base"),
    "Yi": ("llama", "01-ai/Yi-1.5-6B"),
}


def _line_reader(model_type: str, prefix: str, stages: str) -> Family:
    """The row of a PP-OCR reader of lines."""
    return Family(
        module=f"zoo.models.{model_type}",
        prefix=prefix,
        heads=("ForTextRecognition", "Model"),
        tasks={"Model": None},
        reads=("image",),
        processor="ViTImageProcessor",
        stages={"layer": f"backbone.encoder.{stages}"},
    )


def _text_detector(model_type: str, prefix: str, stages: str, bare: tuple[str, ...] = ("Model",)) -> Family:
    """The row of a PP-OCR detector of text.  bare: its model without the head, where that takes pixels."""
    return Family(
        module=f"zoo.models.{model_type}",
        prefix=prefix,
        heads=("ForObjectDetection", *bare),
        tasks=dict.fromkeys(("ForObjectDetection", *bare)),
        losses={"ForObjectDetection": None},
        processor="ViTImageProcessor",
        stages={"layer": f"backbone.encoder.{stages}"},
    )


# model_type in config.json -> the row.
FAMILIES: dict[str, Family] = {
    "bert": Family(
        module="zoo.models.bert",
        prefix="Bert",
        heads=(*_TEXT, "ForPreTraining", "ForNextSentencePrediction", "LMHeadModel"),
        tasks={"ForPreTraining": "fill-mask"},
    ),
    "roberta": Family(module="zoo.models.roberta", prefix="Roberta", heads=(*_TEXT, "ForCausalLM")),
    "roberta-prelayernorm": Family(
        module="zoo.models.roberta_prelayernorm",
        prefix="RobertaPreLayerNorm",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification"),
    ),
    "xlm-roberta": Family(
        module="zoo.models.roberta", prefix="XLMRoberta", classes="Roberta", heads=(*_TEXT, "ForCausalLM")
    ),
    "camembert": Family(
        module="zoo.models.roberta", prefix="Camembert", classes="Roberta", heads=(*_TEXT, "ForCausalLM")
    ),
    "big_bird": Family(
        module="zoo.models.big_bird",
        prefix="BigBird",
        heads=(*_TEXT, "ForPreTraining", "ForCausalLM"),
        tasks={"ForPreTraining": "fill-mask"},
    ),
    "longformer": Family(module="zoo.models.longformer", prefix="Longformer", heads=_TEXT),
    "xlm-roberta-xl": Family(
        module="zoo.models.xlm_roberta_xl",
        prefix="XLMRobertaXL",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification"),
    ),
    "data2vec-text": Family(
        module="zoo.models.data2vec_text",
        prefix="Data2VecText",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification"),
    ),
    "ernie": Family(
        module="zoo.models.ernie",
        prefix="Ernie",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    ),
    "megatron-bert": Family(
        module="zoo.models.megatron_bert",
        prefix="MegatronBert",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    ),
    "mobilebert": Family(
        module="zoo.models.mobilebert",
        prefix="MobileBert",
        heads=(
            "Model",
            "ForMaskedLM",
            "ForSequenceClassification",
            "ForTokenClassification",
            "ForQuestionAnswering",
        ),
    ),
    "albert": Family(
        module="zoo.models.albert",
        prefix="Albert",
        heads=(*_TEXT, "ForPreTraining"),
        tasks={"ForPreTraining": "fill-mask"},
        stages={"layer": "encoder.albert_layer_groups", "embeddings": "encoder.embedding_hidden_mapping_in"},
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
    "jina_embeddings_v3": Family(
        module="zoo.models.jina_embeddings_v3",
        prefix="JinaEmbeddingsV3",
        heads=_TEXT[:5],
    ),
    "mpnet": Family(module="zoo.models.mpnet", prefix="MPNet", heads=_TEXT),
    "modernbert": Family(module="zoo.models.modernbert", prefix="ModernBert", heads=_TEXT),
    "modernbert-decoder": Family(
        module="zoo.models.modernbert_decoder", prefix="ModernBertDecoder", heads=_DECODER[:3]
    ),
    "eurobert": Family(
        module="zoo.models.eurobert",
        prefix="EuroBert",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    ),
    "deberta": Family(module="zoo.models.deberta", prefix="Deberta", heads=_TEXT[:5]),
    "luke": Family(
        module="zoo.models.luke",
        prefix="Luke",
        heads=(
            *_TEXT[:5],
            "ForEntityClassification",
            "ForEntityPairClassification",
            "ForEntitySpanClassification",
        ),
    ),
    "xlnet": Family(
        module="zoo.models.xlnet",
        prefix="XLNet",
        heads=(
            "Model",
            "LMHeadModel",
            "ForSequenceClassification",
            "ForTokenClassification",
            "ForQuestionAnsweringSimple",
            "ForMultipleChoice",
        ),
        tasks={"LMHeadModel": None, "ForQuestionAnsweringSimple": "answer"},
        losses={"LMHeadModel": "tokens", "ForQuestionAnsweringSimple": "span"},
    ),
    "canine": Family(
        module="zoo.models.canine",
        prefix="Canine",
        heads=(_TEXT[0], *_TEXT[2:]),
        stages={"layer": "encoder.layer"},
    ),
    "esm": Family(
        module="zoo.models.esm",
        prefix="Esm",
        heads=("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    ),
    "deberta-v2": Family(module="zoo.models.deberta_v2", prefix="DebertaV2", heads=_TEXT),
    "distilbert": Family(module="zoo.models.distilbert", prefix="DistilBert", heads=_TEXT),
    "vit": Family(module="zoo.models.vit", prefix="ViT", heads=_IMAGE, processor="ViTImageProcessor"),
    "deit": Family(
        module="zoo.models.vit",
        prefix="DeiT",
        heads=(*_IMAGE, "ForImageClassificationWithTeacher"),
        processor="DeiTImageProcessor",
    ),
    "vit_msn": Family(
        module="zoo.models.vit_msn",
        prefix="ViTMSN",
        heads=("Model", "ForImageClassification"),
        processor="ViTImageProcessor",
    ),
    "ijepa": Family(
        module="zoo.models.ijepa",
        prefix="IJepa",
        heads=("Model", "ForImageClassification"),
        processor="ViTImageProcessor",
    ),
    "data2vec-vision": Family(
        module="zoo.models.data2vec_vision",
        prefix="Data2VecVision",
        heads=("Model", "ForImageClassification"),
        processor="BeitImageProcessor",
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
        heads=("Model", "ForImageClassification", "Backbone"),
        processor="BitImageProcessor",
    ),
    "dinov2_with_registers": Family(
        module="zoo.models.dinov2",
        prefix="Dinov2WithRegisters",
        heads=("Model", "ForImageClassification", "Backbone"),
        processor="BitImageProcessor",
    ),
    "depth_anything": Family(
        module="zoo.models.depth_anything",
        prefix="DepthAnything",
        heads=("ForDepthEstimation",),
        processor="DPTImageProcessor",
        stages={"layer": "backbone.encoder.layer"},
    ),
    "vitpose": Family(
        module="zoo.models.vitpose",
        prefix="VitPose",
        heads=("ForPoseEstimation",),
        processor="VitPoseImageProcessor",
        stages={"layer": "backbone.encoder.layer"},
    ),
    "dpt": Family(
        module="zoo.models.dpt",
        prefix="DPT",
        heads=("ForDepthEstimation", "ForSemanticSegmentation", "Model"),
        processor="DPTImageProcessor",
    ),
    "swinv2": Family(
        module="zoo.models.swinv2",
        prefix="Swinv2",
        heads=("Model", "ForImageClassification"),
        processor="ViTImageProcessor",
        stages={"layer": "encoder.layers"},
    ),
    "convnext": Family(
        module="zoo.models.convnext",
        prefix="ConvNext",
        heads=("Model", "ForImageClassification", "Backbone"),
        processor="ConvNextImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "convnextv2": Family(
        module="zoo.models.convnextv2",
        prefix="ConvNextV2",
        heads=("Model", "ForImageClassification", "Backbone"),
        processor="ConvNextImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "resnet": Family(
        module="zoo.models.resnet",
        prefix="ResNet",
        heads=("Model", "ForImageClassification", "Backbone"),
        processor="ConvNextImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "regnet": Family(
        module="zoo.models.regnet",
        prefix="RegNet",
        heads=("Model", "ForImageClassification"),
        processor="ConvNextImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "mobilenet_v2": Family(
        module="zoo.models.mobilenet_v2",
        prefix="MobileNetV2",
        heads=("Model", "ForImageClassification", "ForSemanticSegmentation"),
        processor="MobileNetV2ImageProcessor",
        stages={"layer": "layer"},
    ),
    "mobilevit": Family(
        module="zoo.models.mobilevit",
        prefix="MobileViT",
        heads=("Model", "ForImageClassification", "ForSemanticSegmentation"),
        processor="MobileViTImageProcessor",
        stages={"layer": "encoder.layer"},
    ),
    "efficientnet": Family(
        module="zoo.models.efficientnet",
        prefix="EfficientNet",
        heads=("Model", "ForImageClassification"),
        processor="EfficientNetImageProcessor",
        stages={"layer": "encoder.blocks"},
    ),
    "hgnet_v2": Family(
        module="zoo.models.hgnet_v2",
        prefix="HGNetV2",
        heads=("ForImageClassification", "Backbone"),
        processor="ViTImageProcessor",
        stages={"layer": "encoder.stages"},
    ),
    "pp_lcnet": Family(
        module="zoo.models.pp_lcnet",
        prefix="PPLCNet",
        heads=("ForImageClassification", "Backbone"),
        losses={"ForImageClassification": None},
        processor="PPLCNetImageProcessor",
        stages={"layer": "encoder.blocks"},
    ),
    "pp_lcnet_v3": Family(
        module="zoo.models.pp_lcnet_v3",
        prefix="PPLCNetV3",
        heads=("Backbone",),
        processor="ViTImageProcessor",
        stages={"layer": "encoder.blocks"},
    ),
    "pp_lcnet_v4": Family(
        module="zoo.models.pp_lcnet_v4",
        prefix="PPLCNetV4",
        heads=("Backbone",),
        processor="ViTImageProcessor",
        stages={"layer": "encoder.blocks"},
    ),
    "pp_ocrv5_server_rec": _line_reader("pp_ocrv5_server_rec", "PPOCRV5ServerRec", "stages"),
    "pp_ocrv5_mobile_rec": _line_reader("pp_ocrv5_mobile_rec", "PPOCRV5MobileRec", "blocks"),
    "pp_ocrv6_small_rec": _line_reader("pp_ocrv6_small_rec", "PPOCRV6SmallRec", "blocks"),
    "pp_ocrv6_tiny_rec": _line_reader("pp_ocrv6_tiny_rec", "PPOCRV6TinyRec", "blocks"),
    "pp_ocrv5_server_det": _text_detector("pp_ocrv5_server_det", "PPOCRV5ServerDet", "stages"),
    "pp_ocrv5_mobile_det": _text_detector("pp_ocrv5_mobile_det", "PPOCRV5MobileDet", "blocks", bare=()),
    "pp_ocrv6_small_det": _text_detector("pp_ocrv6_small_det", "PPOCRV6SmallDet", "blocks"),
    "pp_ocrv6_medium_det": _text_detector("pp_ocrv6_medium_det", "PPOCRV6MediumDet", "blocks"),
    "slanet": Family(
        module="zoo.models.slanet",
        prefix="SLANet",
        heads=("ForTableRecognition",),
        processor="SLANeXtImageProcessor",
        stages={"layer": "vision_backbone.encoder.blocks"},
    ),
    "slanext": Family(
        module="zoo.models.slanext",
        prefix="SLANeXt",
        heads=("ForTableRecognition",),
        processor="SLANeXtImageProcessor",
        stages={"layer": "vision_tower.layers"},
    ),
    "uvdoc": Family(
        module="zoo.models.uvdoc",
        prefix="UVDoc",
        heads=("Model",),
        tasks={"Model": None},
        reads=("image",),
        processor="ViTImageProcessor",
        stages={"features": "backbone.resnet", "layer": "backbone.bridge.bridge"},
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
        heads=(*_IMAGE, "Backbone"),
        processor="ViTImageProcessor",
        stages={"layer": "encoder.layers"},
    ),
    "sam": Family(
        module="zoo.models.sam",
        prefix="Sam",
        heads=("Model",),
        tasks={"Model": "mask-generation"},
        reads=("image",),
        processor="SamImageProcessor",
        stages={"layer": "vision_encoder.layers"},
    ),
    "sam2": _SAM2,
    "sam2_video": replace(_SAM2, prefix="Sam2Video"),
    "clip": _two_towers("clip", "CLIP"),
    "chinese_clip": replace(
        _two_towers("chinese_clip", "ChineseCLIP"),
        heads=("Model",),
        stages={"vision_model.layer": "vision_model.encoder.layers", "text_model.layer": "text_model.encoder.layer"},
    ),
    "align": replace(
        _two_towers("align", "Align"),
        heads=("Model",),
        processor="EfficientNetImageProcessor",
        stages={"vision_model.layer": "vision_model.encoder.blocks", "text_model.layer": "text_model.encoder.layer"},
    ),
    "owlvit": _word_detector("owlvit", "OwlViT"),
    "owlv2": _word_detector("owlv2", "Owlv2"),
    "grounding-dino": _phrase_detector("grounding_dino", "GroundingDino"),
    "mm-grounding-dino": _phrase_detector("mm_grounding_dino", "MMGroundingDino"),
    "clap": Family(
        module="zoo.models.clap",
        prefix="Clap",
        heads=("Model",),
        tasks={"Model": "zero-shot-audio-classification"},
        losses={"Model": "pairs of texts and sounds"},
        reads=("audio", "text"),
        stages={
            "audio_model.layer": "audio_model.audio_encoder.layers",
            "text_model.layer": "text_model.encoder.layer",
        },
    ),
    "clap_text_model": replace(_CLIP_TEXT, module="zoo.models.clap", prefix="ClapText"),
    "clap_audio_model": replace(
        _CLIP_TEXT,
        module="zoo.models.clap",
        prefix="ClapAudio",
        tasks={"Model": None, "ModelWithProjection": None},
        reads=("audio",),
        stages={"layer": "audio_model.audio_encoder.layers or audio_encoder.layers"},
    ),
    "clipseg": replace(
        _two_towers("clipseg", "CLIPSeg"),
        heads=("ForImageSegmentation", "Model"),
        tasks={"Model": "zero-shot-image-classification"},
        losses={"Model": "pairs", "ForImageSegmentation": None},
        processor="ViTImageProcessor",
    ),
    "clipseg_text_model": Family(module="zoo.models.clipseg", prefix="CLIPSegText", heads=("Model",)),
    "clipseg_vision_model": Family(
        module="zoo.models.clipseg",
        prefix="CLIPSegVision",
        heads=("Model",),
        reads=("image",),
        processor="ViTImageProcessor",
    ),
    "clip_text_model": _CLIP_TEXT,
    "clip_vision_model": _CLIP_VISION,
    "metaclip_2": replace(_two_towers("metaclip_2", "MetaClip2"), processor="CLIPImageProcessor"),
    "metaclip_2_text_model": replace(_CLIP_TEXT, module="zoo.models.metaclip_2", prefix="MetaClip2Text"),
    "metaclip_2_vision_model": replace(_CLIP_VISION, module="zoo.models.metaclip_2", prefix="MetaClip2Vision"),
    "siglip": _two_towers("siglip", "Siglip"),
    "siglip_text_model": Family(module="zoo.models.siglip", prefix="SiglipText", heads=("Model",)),
    "siglip_vision_model": Family(
        module="zoo.models.siglip",
        prefix="SiglipVision",
        heads=("Model",),
        reads=("image",),
        processor="SiglipImageProcessor",
    ),
    "siglip2": _two_towers("siglip2", "Siglip2"),
    "siglip2_text_model": Family(module="zoo.models.siglip2", prefix="Siglip2Text", heads=("Model",)),
    "siglip2_vision_model": Family(
        module="zoo.models.siglip2",
        prefix="Siglip2Vision",
        heads=("Model",),
        reads=("image",),
        processor="Siglip2ImageProcessor",
    ),
    "dinov3_vit": Family(
        module="zoo.models.dinov3_vit",
        prefix="DINOv3ViT",
        heads=("Model", "Backbone"),
        processor="DINOv3ViTImageProcessor",
    ),
    "gemma3": _GEMMA3,
    "got_ocr2": replace(
        _GEMMA3,
        module="zoo.models.got_ocr2",
        prefix="GotOcr2",
        processor="GotOcr2ImageProcessor",
        stages={**_GEMMA3.stages, "vision_model.layer": "vision_tower.layers"},
    ),
    "idefics3": _IDEFICS3,
    "internvl": replace(
        _GEMMA3,
        module="zoo.models.internvl",
        prefix="InternVL",
        processor="GotOcr2ImageProcessor",
        stages={**_GEMMA3.stages, "vision_model.layer": "vision_tower.encoder.layer"},
    ),
    "lighton_ocr": Family(
        module="zoo.models.lighton_ocr",
        prefix="LightOnOcr",
        **_IMAGE_TEXT,
        processor="PixtralImageProcessor",
        stages={
            "vision_model.layer": "vision_encoder.transformer.layers",
            "connector": "vision_projection",
            "language_model.layer": "language_model.layers",
        },
    ),
    "llava": replace(_GEMMA3, module="zoo.models.llava", prefix="Llava", processor="CLIPImageProcessor"),
    "mistral3": replace(
        _GEMMA3,
        module="zoo.models.mistral3",
        prefix="Mistral3",
        processor="PixtralImageProcessor",
        stages={**_GEMMA3.stages, "vision_model.layer": "vision_tower.transformer.layers"},
    ),
    "paligemma": replace(_GEMMA3, module="zoo.models.paligemma", prefix="PaliGemma", processor="SiglipImageProcessor"),
    "smolvlm": replace(_IDEFICS3, prefix="SmolVLM", classes="Idefics3", processor="SmolVLMImageProcessor"),
    "arcee": Family(module="zoo.models.arcee", prefix="Arcee", heads=_DECODER[:3]),
    "bloom": Family(module="zoo.models.bloom", prefix="Bloom", heads=_DECODER[:3]),
    "codegen": Family(module="zoo.models.codegen", prefix="CodeGen", heads=_DECODER[:2]),
    "cohere": Family(module="zoo.models.cohere", prefix="Cohere", heads=_DECODER[:2]),
    "cohere2": Family(module="zoo.models.cohere2", prefix="Cohere2", heads=_DECODER[:2]),
    "ernie4_5": Family(module="zoo.models.ernie4_5", prefix="Ernie4_5", heads=_DECODER[:2]),
    "exaone4": Family(module="zoo.models.exaone4", prefix="Exaone4", heads=_DECODER),
    "falcon": Family(module="zoo.models.falcon", prefix="Falcon", heads=_DECODER[:3]),
    "gemma": Family(module="zoo.models.gemma", prefix="Gemma", heads=_DECODER[:4]),
    "gemma2": Family(module="zoo.models.gemma2", prefix="Gemma2", heads=_DECODER[:3]),
    "gemma3_text": Family(
        module="zoo.models.gemma3",
        prefix="Gemma3Text",
        heads=("Model", "ForCausalLM", "ForSequenceClassification"),
        names={"ForCausalLM": "Gemma3ForCausalLM"},
    ),
    "glm": Family(module="zoo.models.glm", prefix="Glm", heads=_DECODER[:3]),
    "glm4": Family(module="zoo.models.glm4", prefix="Glm4", heads=_DECODER[:4]),
    "falcon_h1": Family(module="zoo.models.falcon_h1", prefix="FalconH1", heads=_DECODER[:2]),
    "gpt2": Family(
        module="zoo.models.gpt2",
        prefix="GPT2",
        heads=("Model", "LMHeadModel", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
    ),
    "gpt_bigcode": Family(module="zoo.models.gpt_bigcode", prefix="GPTBigCode", heads=_DECODER[:3]),
    "gpt_neo": Family(module="zoo.models.gpt_neo", prefix="GPTNeo", heads=_DECODER[:3]),
    "gpt_neox": Family(module="zoo.models.gpt_neox", prefix="GPTNeoX", heads=_DECODER),
    "gpt_oss": Family(module="zoo.models.gpt_oss", prefix="GptOss", heads=_DECODER[:4]),
    "gptj": Family(module="zoo.models.gptj", prefix="GPTJ", heads=_DECODER[:2]),
    "granite": Family(module="zoo.models.granite", prefix="Granite", heads=_DECODER[:2]),
    "helium": Family(module="zoo.models.helium", prefix="Helium", heads=_DECODER[:4]),
    "hunyuan_v1_dense": Family(module="zoo.models.hunyuan_v1_dense", prefix="HunYuanDenseV1", heads=_DECODER[:3]),
    "deepseek_v3": Family(module="zoo.models.deepseek_v3", prefix="DeepseekV3", heads=_DECODER[:4]),
    "lfm2": Family(module="zoo.models.lfm2", prefix="Lfm2", heads=_DECODER[:2]),
    "llama": Family(module="zoo.models.llama3", prefix="Llama", heads=_DECODER),
    "mamba2": Family(module="zoo.models.mamba2", prefix="Mamba2", heads=_DECODER[:2]),
    "mistral": Family(module="zoo.models.mistral", prefix="Mistral", classes="Llama", heads=_DECODER),
    "ministral": Family(module="zoo.models.mistral", prefix="Ministral", classes="Llama", heads=_DECODER[:2]),
    "ministral3": Family(module="zoo.models.ministral3", prefix="Ministral3", heads=_DECODER),
    "mixtral": Family(module="zoo.models.mixtral", prefix="Mixtral", heads=_DECODER),
    "mpt": Family(module="zoo.models.mpt", prefix="Mpt", heads=_DECODER),
    "layoutlmv3": Family(
        module="zoo.models.layoutlmv3",
        prefix="LayoutLMv3",
        heads=("Model", "ForTokenClassification", "ForSequenceClassification", "ForQuestionAnswering"),
        tasks={
            "Model": None,
            "ForTokenClassification": "tag-page",
            "ForSequenceClassification": None,
            "ForQuestionAnswering": None,
        },
        reads=("image", "text"),
        processor="LayoutLMv3ImageProcessor",
    ),
    "olmo": Family(module="zoo.models.olmo", prefix="Olmo", heads=_DECODER[:3]),
    "olmo2": Family(module="zoo.models.olmo2", prefix="Olmo2", heads=_DECODER[:3]),
    "olmo3": Family(module="zoo.models.olmo3", prefix="Olmo3", heads=_DECODER[:3]),
    "nemotron": Family(module="zoo.models.nemotron", prefix="Nemotron", heads=_DECODER[:3]),
    "olmoe": Family(module="zoo.models.olmoe", prefix="Olmoe", heads=_DECODER[:2]),
    "opt": Family(
        module="zoo.models.opt",
        prefix="OPT",
        heads=("Model", "ForCausalLM", "ForSequenceClassification", "ForQuestionAnswering"),
    ),
    "phi": Family(module="zoo.models.phi", prefix="Phi", heads=_DECODER[:4]),
    "phi3": Family(module="zoo.models.phi3", prefix="Phi3", heads=_DECODER[:4]),
    "qwen2": Family(module="zoo.models.qwen2", prefix="Qwen2", classes="Llama", heads=_DECODER),
    "qwen2_5_vl": _qwen_vl("qwen2_5_vl", "Qwen2_5_VL"),
    "qwen3_vl": _qwen_vl("qwen3_vl", "Qwen3VL"),
    "qwen2_vl": _qwen_vl("qwen2_vl", "Qwen2VL"),
    "glm_ocr": _qwen_vl("glm_ocr", "GlmOcr", "Glm46VImageProcessor"),
    "paddleocr_vl": Family(
        module="zoo.models.paddleocr_vl",
        prefix="PaddleOCRVL",
        **_IMAGE_TEXT,
        processor="PaddleOCRVLImageProcessor",
        stages={
            "vision_model.layer": "visual.vision_model.encoder.layers",
            "connector": "projector",
            "language_model.layer": "language_model.layers",
        },
    ),
    "qwen2_moe": Family(module="zoo.models.qwen2_moe", prefix="Qwen2Moe", heads=_DECODER),
    "qwen3": Family(module="zoo.models.qwen3", prefix="Qwen3", heads=_DECODER),
    "qwen3_moe": Family(module="zoo.models.qwen3_moe", prefix="Qwen3Moe", heads=_DECODER),
    "qwen3_5_text": Family(
        module="zoo.models.qwen3_5",
        prefix="Qwen3_5Text",
        heads=("Model", "ForCausalLM", "ForSequenceClassification"),
        names={"ForCausalLM": "Qwen3_5ForCausalLM"},
    ),
    "seed_oss": Family(module="zoo.models.seed_oss", prefix="SeedOss", heads=_DECODER),
    "stablelm": Family(module="zoo.models.stablelm", prefix="StableLm", heads=_DECODER[:4]),
    "starcoder2": Family(module="zoo.models.starcoder2", prefix="Starcoder2", heads=_DECODER[:4]),
    "smollm3": Family(module="zoo.models.smollm3", prefix="SmolLM3", classes="Llama", heads=_DECODER),
    "detr": Family(
        module="zoo.models.detr",
        prefix="Detr",
        heads=("Model", "ForObjectDetection", "ForSegmentation"),
        tasks={"Model": None},
        losses={"ForSegmentation": None},
        processor="DetrImageProcessor",
        stages={
            "features": "backbone",
            "positions": "position_embedding",
            "encoder.layer": "encoder.layers",
            "decoder.layer": "decoder.layers",
        },
    ),
    "conditional_detr": Family(
        module="zoo.models.conditional_detr",
        prefix="ConditionalDetr",
        heads=("ForObjectDetection", "Model"),
        tasks={"Model": None},
        losses={"ForObjectDetection": None},
        processor="ConditionalDetrImageProcessor",
        stages={
            "features": "backbone",
            "positions": "position_embedding",
            "encoder.layer": "encoder.layers",
            "decoder.layer": "decoder.layers",
        },
    ),
    "deformable_detr": Family(
        module="zoo.models.deformable_detr",
        prefix="DeformableDetr",
        heads=("ForObjectDetection", "Model"),
        tasks={"Model": None},
        losses={"ForObjectDetection": None},
        processor="DeformableDetrImageProcessor",
        stages={"features": "backbone", "encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "yolos": Family(
        module="zoo.models.yolos",
        prefix="Yolos",
        heads=("Model", "ForObjectDetection"),
        tasks={"Model": None},
        processor="YolosImageProcessor",
    ),
    "rt_detr_v2": _RT_DETR,
    "rt_detr": replace(_RT_DETR, prefix="RTDetr", classes="RTDetrV2"),
    "d_fine": replace(_RT_DETR, module="zoo.models.d_fine", prefix="DFine"),
    "rf_detr": Family(
        module="zoo.models.rf_detr",
        prefix="RfDetr",
        heads=("ForObjectDetection", "ForInstanceSegmentation", "Model"),
        tasks={"Model": None},
        losses={"ForObjectDetection": None, "ForInstanceSegmentation": None},
        processor="RfDetrImageProcessor",
        stages={"features": "backbone", "decoder.layer": "decoder.layers"},
    ),
    "mask2former": Family(
        module="zoo.models.mask2former",
        prefix="Mask2Former",
        heads=("ForUniversalSegmentation", "Model"),
        tasks={"Model": None},
        processor="Mask2FormerImageProcessor",
        stages={
            "layer": "pixel_level_module.encoder.swin.encoder.layers or pixel_level_module.encoder.encoder.stages",
        },
    ),
    "pp_doclayout_v2": _pp_doclayout("V2"),
    "pp_doclayout_v3": _pp_doclayout("V3"),
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
        module="zoo.models.vision_encoder_decoder",
        prefix="VisionEncoderDecoder",
        heads=("Model",),
        tasks={"Model": "read"},
        losses={"Model": "written text"},
        reads=("image",),
        writes=True,
        stages={
            "encoder.layer": "encoder.layers or encoder.encoder.layers",
            "decoder.layer": "decoder.model.decoder.layers",
        },
    ),
    "blip": Family(
        module="zoo.models.blip",
        prefix="Blip",
        heads=("ForConditionalGeneration",),
        tasks={"ForConditionalGeneration": "image-text-to-text"},
        losses={"ForConditionalGeneration": None},
        reads=("image",),
        writes=True,
        processor="BlipImageProcessor",
        stages={"encoder.layer": "vision_model.encoder.layers", "decoder.layer": "text_decoder.bert.encoder.layer"},
    ),
    "florence2": Family(
        module="zoo.models.florence2",
        prefix="Florence2",
        heads=("ForConditionalGeneration",),
        tasks={"ForConditionalGeneration": "image-text-to-text"},
        losses={"ForConditionalGeneration": None},
        reads=("image", "text"),
        writes=True,
        processor="CLIPImageProcessor",
        stages={
            "connector": "multi_modal_projector",
            "encoder.layer": "language_model.encoder.layers",
            "decoder.layer": "language_model.decoder.layers",
        },
    ),
    "donut-swin": Family(
        module="zoo.models.donut_swin",
        prefix="DonutSwin",
        heads=("Model", "ForImageClassification"),
        processor="DonutImageProcessor",
        stages={"layer": "encoder.layers"},
    ),
    "t5": _T5,
    "mt5": replace(_T5, prefix="MT5", classes="T5"),
    "umt5": replace(_T5, prefix="UMT5", classes="T5", heads=("ForConditionalGeneration", "EncoderModel", "Model")),
    "switch_transformers": replace(
        _T5,
        module="zoo.models.switch_transformers",
        prefix="SwitchTransformers",
        heads=("ForConditionalGeneration", "EncoderModel", "Model"),
    ),
    "bart": Family(
        module="zoo.models.bart",
        prefix="Bart",
        heads=("ForConditionalGeneration", "Model", "ForSequenceClassification", "ForQuestionAnswering", "ForCausalLM"),
        tasks={"ForCausalLM": None},
        losses={"ForCausalLM": "tokens"},  # labels are shifted already
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "led": Family(
        module="zoo.models.led",
        prefix="LED",
        heads=("ForConditionalGeneration", "Model", "ForQuestionAnswering"),
        tasks={"Model": None},
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "marian": Family(
        module="zoo.models.bart",
        prefix="Marian",
        heads=("MTModel", "Model", "ForCausalLM"),
        tasks={"MTModel": "translation", "Model": None, "ForCausalLM": None},
        losses={"MTModel": "written text", "ForCausalLM": "tokens"},
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "mbart": _MBART,
    "pegasus": replace(
        _MBART, module="zoo.models.pegasus", prefix="Pegasus", tasks={"Model": None, "ForCausalLM": None}
    ),
    "m2m_100": replace(
        _MBART,
        module="zoo.models.m2m_100",
        prefix="M2M100",
        heads=("ForConditionalGeneration", "Model"),
        tasks={"ForConditionalGeneration": "translation", "Model": None},
        losses={},
    ),
    "whisper": Family(
        module="zoo.models.whisper",
        prefix="Whisper",
        heads=("ForConditionalGeneration", "Model", "ForAudioClassification", "ForCausalLM"),
        tasks={"ForConditionalGeneration": "automatic-speech-recognition", "Model": None, "ForCausalLM": None},
        losses={"ForCausalLM": "tokens"},  # labels are shifted already
        reads=("audio",),
        writes=True,
        stages={"encoder.layer": "encoder.layers", "decoder.layer": "decoder.layers"},
    ),
    "audio-spectrogram-transformer": Family(
        module="zoo.models.audio_spectrogram_transformer",
        prefix="AST",
        heads=("Model", "ForAudioClassification"),
        tasks={"Model": None},
        reads=("audio",),
    ),
    "wav2vec2": Family(module="zoo.models.wav2vec2", prefix="Wav2Vec2", **_SPEECH),
    "hubert": Family(module="zoo.models.hubert", prefix="Hubert", **_SPEECH),
    "wavlm": Family(module="zoo.models.wavlm", prefix="WavLM", **_SPEECH),
    "wav2vec2-bert": Family(module="zoo.models.wav2vec2_bert", prefix="Wav2Vec2Bert", **_SPEECH),
    "unispeech": Family(module="zoo.models.unispeech", prefix="UniSpeech", **_SPEECH),
    "unispeech-sat": Family(module="zoo.models.unispeech_sat", prefix="UniSpeechSat", **_SPEECH),
    "parakeet_ctc": Family(
        module="zoo.models.parakeet",
        prefix="Parakeet",
        heads=("ForCTC",),
        reads=("audio",),
        names={"Config": "ParakeetCTCConfig"},
        stages={"layer": "encoder.layers"},
    ),
    "moonshine": Family(
        module="zoo.models.moonshine",
        prefix="Moonshine",
        heads=("ForConditionalGeneration", "Model"),
        tasks={"ForConditionalGeneration": "automatic-speech-recognition", "Model": None},
        reads=("audio",),
        writes=True,
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

# model_type of files that another library than transformers reads -> its row.
OTHER_LIBRARIES: dict[str, Family] = {
    "model2vec": Family(module="zoo.models.model2vec", prefix="Static", heads=("Model",)),
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
    if model_type in NATIVE_TYPES:
        native, example = NATIVE_TYPES[model_type]
        raise UnsupportedError(
            f"model_type {model_type!r} is not one that zoo has{code}: the same architecture is {native!r} in "
            f"transformers and in zoo, with other names, as in {example}"
        )
    if model_type in OTHER_LIBRARIES:
        return OTHER_LIBRARIES[model_type]
    if model_type not in FAMILIES:
        from .model_types import describe_other  # which a load has no other need of

        if what := describe_other(model_type):
            raise UnsupportedError(
                f"model_type {model_type!r} is not one that zoo has{code}: it {what}; "
                "docs/adding-a-model.md shows how to add a family"
            )
        guess = nearest(model_type, FAMILIES)
        raise UnsupportedError(
            f"model_type {model_type!r} is not one that zoo has ({', '.join(FAMILIES)}){guess}{code}; "
            "docs/adding-a-model.md shows how to add a family"
        )
    return FAMILIES[model_type]


def architectures() -> dict[str, str]:
    """The class names that a checkpoint's `architectures` may have -> their model_type."""
    return {name: model_type for model_type, family in FAMILIES.items() for name in family.architectures}


def borrowed_classes(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a family's package, for the names in transformers of classes that other families lend it:
    MistralForCausalLM, which is LlamaForCausalLM.
    """

    def borrowed_class(name: str) -> Any:
        for family in FAMILIES.values():
            head = family.head(name) if family.module == package and family.classes else None
            if head is not None:
                return family.load(head)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return borrowed_class


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
