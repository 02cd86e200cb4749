"""Checkpoints of further encoders: relatives of BERT, of RoBERTa, of ViT, of BEiT, of CLIP and of wav2vec 2.0."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from .clip import _IMAGES, _TEXT, _TINY_TEXT, _TINY_VISION, _VISION
from .common import Spec, labels
from .text import _BERT, _BERT_TINY, _ROBERTA, _ROBERTA_TINY, TextSpec, _text
from .vision import _BEIT, _CENTER_CROP, _IMAGENET, _VIT_NOW, BEIT, VIT, _vision
from .wav2vec2 import CONFIG, LARGE_CONFIG, TINY_CONFIG, SpeechSpec

_data2vec = partial(_text, model_type="data2vec-text", prefix="Data2VecText", base=_ROBERTA, tiny=_ROBERTA_TINY)
_data2vec = partial(_data2vec, tokenizer="bpe", reserved=2)
_xl = partial(_text, model_type="xlm-roberta-xl", prefix="XLMRobertaXL", tiny=_ROBERTA_TINY, reserved=2)
_XL = {**_ROBERTA, "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 10240}
_xl = partial(_xl, base={**_XL, "vocab_size": 250880}, tokenizer="wordpiece, json")
_ERNIE = {**_BERT, "vocab_size": 40000, "max_position_embeddings": 2048, "type_vocab_size": 4, "layer_norm_eps": 1e-5}
_ERNIE |= {"task_type_vocab_size": 16, "use_task_id": True, "enable_recompute": False}
_ernie = partial(_text, model_type="ernie", prefix="Ernie", base=_ERNIE, tiny=_BERT_TINY, tokenizer="wordpiece")
_MEGATRON = {**_BERT, "vocab_size": 50176, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
_MEGATRON |= {"intermediate_size": 4096}
_megatron = partial(_text, model_type="megatron-bert", prefix="MegatronBert", base=_MEGATRON, tiny=_BERT_TINY)
_megatron = partial(_megatron, tokenizer="wordpiece")
_MOBILE = {**_BERT, "hidden_size": 512, "num_hidden_layers": 24, "num_attention_heads": 4, "intermediate_size": 512}
_MOBILE |= {"hidden_act": "relu", "hidden_dropout_prob": 0.0, "embedding_size": 128, "intra_bottleneck_size": 128}
_MOBILE |= {"trigram_input": True, "use_bottleneck": True, "use_bottleneck_attention": False}
_MOBILE |= {"key_query_shared_bottleneck": True, "num_feedforward_networks": 4, "normalization_type": "no_norm"}
_MOBILE |= {"classifier_activation": False}
_MOBILE_TINY = {**_BERT_TINY, "embedding_size": 20, "intra_bottleneck_size": 32, "num_feedforward_networks": 2}
_mobile = partial(_text, model_type="mobilebert", prefix="MobileBert", base=_MOBILE, tiny=_MOBILE_TINY)
# Its norms are factors, which random weights of norms beside a 1 are not: 20 times as large they are about 1 as well.
_FACTORS = ("embeddings", "input", "attention", "output", "bottleneck")
_mobile = partial(_mobile, tokenizer="wordpiece", gains={f"{part}.LayerNorm": 20.0 for part in _FACTORS})
_SEVEN, _THOUSAND = labels(count=7), labels(count=1000)
_ESM = {"vocab_size": 33, "mask_token_id": 32, "pad_token_id": 1, "hidden_size": 320, "num_hidden_layers": 6}
_ESM |= {"num_attention_heads": 20, "intermediate_size": 1280, "hidden_act": "gelu", "layer_norm_eps": 1e-5}
_ESM |= {"max_position_embeddings": 1026, "position_embedding_type": "rotary", "emb_layer_norm_before": False}
_ESM |= {"token_dropout": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_ESM_TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
_ESM_TINY |= {"max_position_embeddings": 66}
_YOLOS = {**VIT, "hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "image_size": [800, 1333]}
_YOLOS |= {
    "num_detection_tokens": 100,
    "use_mid_position_embeddings": False,
    "auxiliary_loss": False,
    **labels(count=91),
}
_YOLOS_IMAGES = {**_IMAGENET, "image_processor_type": "YolosImageProcessor", "size": 800, "max_size": 1333}
_YOLOS_TINY = {"image_size": [48, 64], "num_detection_tokens": 20, **_SEVEN}
_yolos = partial(_vision, model_type="yolos", prefix="Yolos", base=_YOLOS, tiny=_YOLOS_TINY, processor=_YOLOS_IMAGES)
_MSN = {**VIT, "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536, "layer_norm_eps": 1e-6}
_msn = partial(_vision, model_type="vit_msn", prefix="ViTMSN", base=_MSN, processor=_VIT_NOW)
_JEPA = {**VIT, "hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "intermediate_size": 5120}
_JEPA |= {"patch_size": 14, "layer_norm_eps": 1e-6}
_jepa = partial(_vision, model_type="ijepa", prefix="IJepa", base=_JEPA, processor=_VIT_NOW)
_DATA2VEC = {**BEIT, "use_relative_position_bias": True, "use_shared_relative_position_bias": True}
_data2vec_vision = partial(
    _vision,
    model_type="data2vec-vision",
    prefix="Data2VecVision",
    base=_DATA2VEC,
    processor={**_BEIT, **_IMAGENET, **_CENTER_CROP, "do_center_crop": False},
)


class EsmSpec(TextSpec):
    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """The head of contacts, which looks at attention."""
        yield from super().unread_tensors(config, names)
        at = f"{self.prefix}contact_head.regression."
        yield f"{at}weight", np.full((1, config["num_hidden_layers"] * config["num_attention_heads"]), 0.1, np.float32)
        yield f"{at}bias", np.zeros(1, np.float32)


def _esm(like: str, head: str, config: Mapping[str, Any] | None = None, **more: Any) -> EsmSpec:
    return EsmSpec(
        like=like,
        model_type="esm",
        architecture=f"Esm{head}",
        config={**_ESM, **(config or {})},
        tiny=_ESM_TINY,
        **more,
    )


def _metaclip(like: str, head: str, **more: Any) -> Spec:
    outer = {"projection_dim": 512, "logit_scale_init_value": 2.6592, **more.pop("outer", {})}
    text = {**_TEXT, "vocab_size": 901629}
    return Spec(
        like=like,
        model_type="metaclip_2",
        architecture=f"MetaClip2{head}",
        config={**outer, "text_config": text, "vision_config": _VISION},
        tiny={
            "text_config": {**text, **_TINY_TEXT},
            "vision_config": {**_VISION, **_TINY_VISION},
            "projection_dim": 32,
            **more.pop("small", {}),
        },
        processor=_IMAGES,
        tokenizer="wordpiece, json",
        **more,
    )


def _metaclip_side(side: str, head: str, config: dict[str, Any], tiny: dict[str, Any], **more: Any) -> Spec:
    return Spec(
        like="save_pretrained",
        model_type=f"metaclip_2_{side.lower()}_model",
        architecture=f"MetaClip2{side}{head}",
        config={"projection_dim": 512, **config},
        tiny={**tiny, "projection_dim": 32},
        **more,
    )


_metaclip_text = partial(
    _metaclip_side, "Text", config={**_TEXT, "eos_token_id": 4}, tiny=_TINY_TEXT, tokenizer="wordpiece, json"
)
_metaclip_vision = partial(_metaclip_side, "Vision", config=_VISION, tiny=_TINY_VISION, processor=_IMAGES)


def _speech(model_type: str, prefix: str) -> Any:
    return partial(SpeechSpec, model_type=model_type, gains={"conv": 8.0}, tiny=TINY_CONFIG)


_unispeech, _sat = _speech("unispeech", "UniSpeech"), _speech("unispeech-sat", "UniSpeechSat")
_LARGE_SPEECH_CONFIG = {**CONFIG, **LARGE_CONFIG}
_WEIGHTED_SUM_CONFIG = {**CONFIG, "use_weighted_layer_sum": True, **labels(count=5)}

SPECS: dict[str, Spec] = {
    "data2vec-text-base": _data2vec("facebook/data2vec-text-base", "ForMaskedLM", full=True),
    "data2vec-text-bare": _data2vec("save_pretrained", "Model"),
    "data2vec-text-classifier": _data2vec("save_pretrained", "ForSequenceClassification", labels(count=3)),
    "xlm-roberta-xl": _xl("facebook/xlm-roberta-xl", "ForMaskedLM"),
    "xlm-roberta-xl-bare": _xl("save_pretrained", "Model"),
    "xlm-roberta-xl-classifier": _xl("save_pretrained", "ForSequenceClassification", labels(count=3)),
    "ernie-3.0-base-zh": _ernie("nghuyong/ernie-3.0-base-zh", "ForMaskedLM", full=True),
    "ernie-bare": _ernie("save_pretrained", "Model", {"use_task_id": False}),
    "ernie-classifier": _ernie("save_pretrained", "ForSequenceClassification", labels(count=3)),
    "ernie-tagger": _ernie("save_pretrained", "ForTokenClassification", labels(count=9)),
    "gatortron-base": _megatron("UFNLP/gatortron-base", "ForMaskedLM", full=True),
    "megatron-bare": _megatron("save_pretrained", "Model"),
    "megatron-classifier": _megatron("save_pretrained", "ForSequenceClassification", labels(count=3)),
    "megatron-tagger": _megatron("save_pretrained", "ForTokenClassification", labels(count=9)),
    "mobilebert-uncased": _mobile("google/mobilebert-uncased", "ForMaskedLM", full=True),
    "mobilebert-bare": _mobile("save_pretrained", "Model"),
    "mobilebert-classifier": _mobile(
        "save_pretrained", "ForSequenceClassification", {"classifier_activation": True, **labels(count=3)}
    ),
    "mobilebert-tagger": _mobile("save_pretrained", "ForTokenClassification", labels(count=9)),
    "mobilebert-squad2": _mobile("csarron/mobilebert-uncased-squad-v2", "ForQuestionAnswering"),
    "esm2_t6_8M_UR50D": _esm("facebook/esm2_t6_8M_UR50D", "ForMaskedLM", full=True),
    "esm-1b-classifier": _esm(
        "save_pretrained",
        "ForSequenceClassification",
        {"position_embedding_type": "absolute", "emb_layer_norm_before": True, "token_dropout": False},
    ),
    "esm2-bare": _esm("save_pretrained", "Model"),
    "esm2-tagger": _esm("save_pretrained", "ForTokenClassification", labels(count=3)),
    "yolos-tiny": _yolos("hustvl/yolos-tiny", "ForObjectDetection", full=True),
    "yolos-bare": _yolos("save_pretrained", "Model"),
    "yolos-small": _yolos(
        "save_pretrained", "ForObjectDetection", {"image_size": [512, 864], "use_mid_position_embeddings": True}
    ),
    "vit-msn-small": _msn("facebook/vit-msn-small", "Model", full=True),
    "vit-msn-classifier": _msn("save_pretrained", "ForImageClassification", _THOUSAND, _SEVEN),
    "ijepa_vith14_1k": _jepa("facebook/ijepa_vith14_1k", "Model", full=True),
    "ijepa-classifier": _jepa("save_pretrained", "ForImageClassification", _THOUSAND, _SEVEN),
    "data2vec-vision-base": _data2vec_vision("facebook/data2vec-vision-base", "Model"),
    "data2vec-vision-base-ft1k": _data2vec_vision(
        "facebook/data2vec-vision-base-ft1k", "ForImageClassification", _THOUSAND, _SEVEN, full=True
    ),
    "metaclip-2-worldwide-b32": _metaclip("facebook/metaclip-2-worldwide-b32", "Model", full=True),
    "metaclip-2-classifier": _metaclip(
        "save_pretrained",
        "ForImageClassification",
        outer=_THOUSAND,
        small=_SEVEN,
        inert=(*Spec.inert, "post_layernorm"),
    ),
    "metaclip-2-text": _metaclip_text("Model"),
    "metaclip-2-text-projection": _metaclip_text("ModelWithProjection"),
    "metaclip-2-vision": _metaclip_vision("Model"),
    "metaclip-2-vision-projection": _metaclip_vision("ModelWithProjection"),
    "unispeech-large": _unispeech(
        like="microsoft/unispeech-1350-en-168-es-ft-1h",
        architecture="UniSpeechForCTC",
        config=_LARGE_SPEECH_CONFIG,
        full=True,
    ),
    "unispeech-bare": _unispeech(like="save_pretrained", architecture="UniSpeechModel", config=CONFIG, names="new"),
    "unispeech-classifier": _unispeech(
        like="save_pretrained", architecture="UniSpeechForSequenceClassification", config=_WEIGHTED_SUM_CONFIG
    ),
    "unispeech-sat-base-100h": _sat(
        like="microsoft/unispeech-sat-base-100h-libri-ft",
        architecture="UniSpeechSatForCTC",
        config=CONFIG,
        full=True,
    ),
    "unispeech-sat-bare": _sat(
        like="save_pretrained", architecture="UniSpeechSatModel", config=_LARGE_SPEECH_CONFIG, names="new"
    ),
    "unispeech-sat-classifier": _sat(
        like="save_pretrained", architecture="UniSpeechSatForSequenceClassification", config=_WEIGHTED_SUM_CONFIG
    ),
}
