"""A small random Idefics3 with a tokenizer, a chat template and a processor, as Granite Docling has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parity.specs import SPECS, config_of

SPECIALS = [
    *("<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<image>", "<fake_token_around_image>"),
    *("<global-img>", "<end_of_utterance>", "<doctag>", "</doctag>", "<otsl>", "</otsl>", "<fcel>", "<nl>"),
    *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
]
TEMPLATE = """\
{%- for message in messages -%}
{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}{%- elif part['type'] == 'image' -%}{{- '<image>' -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|end_of_text|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_of_role|>assistant<|end_of_role|>' -}}{%- endif -%}
"""
# Goes through the letters of a text, as SmolVLM's does.
OF_PARTS = """\
{% for message in messages %}<|start_of_role|>{{ message['role'] }}<|end_of_role|>\
{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}\
{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<|end_of_text|>
{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"""


def write_image_text_checkpoint(
    folder: Path, template: str | None = TEMPLATE, positions: int = 600, more: Sequence[str] = ()
) -> Path:
    """A checkpoint whose answers are noise, among it special tokens.  more: further ones of these."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    from zoo.models.idefics3 import Idefics3Config, Idefics3ForConditionalGeneration
    from zoo.saving import save_model

    vocab = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocab["ĊĊ"] = len(vocab)
    made = Tokenizer(models.BPE(vocab, [("Ċ", "Ċ")]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (*SPECIALS, *more)])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    stated: dict[str, Any] = {"eos_token": "<|end_of_text|>", "pad_token": "<|end_of_text|>"}
    stated |= {"tokenizer_class": "PreTrainedTokenizerFast", "padding_side": "left"}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    end, size = made.token_to_id("<|end_of_text|>"), made.get_vocab_size()
    raw = config_of(SPECS["idefics3-untied"], "tiny")
    text = {**raw["text_config"], "vocab_size": size, "max_position_embeddings": positions, "initializer_range": 0.3}
    text |= {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    raw |= {"text_config": text, "image_token_id": made.token_to_id("<image>")}
    save_model(Idefics3ForConditionalGeneration.from_config(Idefics3Config.from_dict(raw)), folder)
    processor = {**SPECS["idefics3-untied"].processor_of(raw), "image_processor_type": "Idefics3ImageProcessor"}
    processor |= {"processor_class": "Idefics3Processor", "size": {"longest_edge": 96}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    counts = {"processor_class": "Idefics3Processor", "image_seq_len": 4}
    (folder / "processor_config.json").write_text(json.dumps(counts))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end, "max_new_tokens": 12}))
    return folder


def write_llava_checkpoint(folder: Path) -> Path:
    """The same tokenizer and template with a small random LLaVA."""
    write_image_text_checkpoint(folder)
    _write_model(folder, "llava-1.5-7b-hf", {"image_token_index": "<image>"})
    more = {"processor_class": "LlavaProcessor", "patch_size": 8, "num_additional_image_tokens": 1}
    more |= {"vision_feature_select_strategy": "default", "image_token": "<image>"}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder


def write_lighton_ocr_checkpoint(folder: Path) -> Path:
    """A small random LightOnOCR, with Qwen's tokens around images."""
    marks = {"image_token": "<|image_pad|>", "image_break_token": "<|vision_pad|>", "image_end_token": "<|vision_end|>"}
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", marks["image_token"]), more=[*marks.values()])
    _write_model(folder, "LightOnOCR-1B-1025", {"image_token_id": marks["image_token"]})
    stated = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**stated, "extra_special_tokens": marks}))
    more = {"processor_class": "LightOnOcrProcessor", "patch_size": 4, "spatial_merge_size": 2}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder


def write_mistral3_checkpoint(folder: Path) -> Path:
    """A small random Mistral 3, with Pixtral's tokens after the rows of an image."""
    marks = {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]"}
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", marks["image_token"]), more=[*marks.values()])
    _write_model(folder, "Mistral-Small-3.1-24B-Instruct-2503", {"image_token_index": marks["image_token"]})
    more = {"processor_class": "PixtralProcessor", "patch_size": 4, "spatial_merge_size": 2, **marks}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder


def write_got_ocr2_checkpoint(folder: Path) -> Path:
    """A small random GOT-OCR 2.0, which has no chat template."""
    write_image_text_checkpoint(folder, None, more=["<|im_start|>", "<|im_end|>", "<img>", "<imgpad>", "</img>"])
    _write_model(folder, "GOT-OCR-2.0-hf", {"image_token_index": "<imgpad>"})
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "GotOcr2Processor"}))
    return folder


def write_internvl_checkpoint(folder: Path) -> Path:
    """The same with a small random InternVL, whose preprocessor_config.json cuts no tiles: its processor does."""
    marks = ("<img>", "<IMG_CONTEXT>", "</img>", "<video>")
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", "<IMG_CONTEXT>\\n"), more=marks)
    _write_model(folder, "InternVL3-1B-hf", {"image_token_id": "<IMG_CONTEXT>"})
    names = ("start_image_token", "context_image_token", "end_image_token", "video_token")
    stated = json.loads((folder / "tokenizer_config.json").read_text())
    stated["extra_special_tokens"] = dict(zip(names, marks, strict=True))
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**processor, "crop_to_patches": False}))
    more = {"processor_class": "InternVLProcessor", "image_seq_length": 16}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder


def write_gemma3_checkpoint(folder: Path) -> Path:
    """A small random Gemma 3 with crops of images, and Gemma's tokens around these."""
    marks = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", marks["boi_token"]), more=[*marks.values()])
    tokens = {f"{name[:-6]}_token_index": mark for name, mark in marks.items()}
    _write_model(folder, "gemma-3-4b-untied", tokens)
    stated = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**stated, **marks}))
    more = {"processor_class": "Gemma3Processor", "image_seq_length": 16}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder


def write_paligemma_checkpoint(folder: Path) -> Path:
    """A small random PaliGemma, which has no chat template."""
    write_image_text_checkpoint(folder, None, more=["<bos>"])
    _write_model(folder, "paligemma-3b-mix-224", {"image_token_index": "<image>"})
    stated = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**stated, "bos_token": "<bos>"}))
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**processor, "image_seq_length": 16}))
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "PaliGemmaProcessor"}))
    return folder


def write_qwen_vl_checkpoint(folder: Path, name: str = "Qwen2-VL-2B-Instruct") -> Path:
    """A small random Qwen-VL of a spec, with Qwen's tokens around images."""
    marks = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
    template = TEMPLATE.replace("<image>", "".join(marks))
    write_image_text_checkpoint(folder, template, more=[*marks, "<|video_pad|>"])
    tokens = {"image_token_id": marks[1], "video_token_id": "<|video_pad|>"}
    tokens |= {"vision_start_token_id": marks[0], "vision_end_token_id": marks[2]}
    _write_model(folder, name, tokens)
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "Qwen2VLProcessor"}))
    return folder


def write_paddleocr_vl_checkpoint(folder: Path) -> Path:
    """A small random PaddleOCR-VL, with its tokens around images."""
    marks = ("<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>")
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", "".join(marks)), more=marks)
    _write_model(folder, "PaddleOCR-VL", {"image_token_id": marks[1], "vision_start_token_id": marks[0]})
    stated = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**stated, "extra_special_tokens": {"image_token": marks[1]}})
    )
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "PaddleOCRVLProcessor"}))
    return folder


def write_glm_ocr_checkpoint(folder: Path) -> Path:
    """A small random GLM-OCR, with GLM's tokens around images and videos."""
    marks = ("<|begin_of_image|>", "<|image|>", "<|end_of_image|>")
    more = (*marks, "<|begin_of_video|>", "<|video|>", "<|end_of_video|>")
    write_image_text_checkpoint(folder, TEMPLATE.replace("<image>", "".join(marks)), more=more)
    _write_model(folder, "GLM-OCR", {"image_token_id": marks[1], "image_start_token_id": marks[0]})
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "Glm46VProcessor"}))
    return folder


def _write_model(folder: Path, name: str, tokens: Mapping[str, str]) -> None:
    """Replace the model of a folder by a random one of a spec.  tokens: fields of the config that are tokens' ids."""
    from zoo.saving import save_model

    added = {one["content"]: one["id"] for one in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]}
    spec = SPECS[name]
    raw, end = config_of(spec, "tiny"), added["<|end_of_text|>"]
    text = {**raw.get("text_config", raw), "vocab_size": max(added.values()) + 1, "initializer_range": 0.3}
    text |= {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    raw |= {"text_config": text} if "text_config" in raw else text
    raw |= {field: added[token] for field, token in tokens.items()}
    cls: Any = spec.model_class
    save_model(cls.from_config(cls.config_class.from_dict(raw)), folder / "model")
    for file in ("config.json", "model.safetensors"):
        (folder / "model" / file).replace(folder / file)
    (folder / "preprocessor_config.json").write_text(json.dumps(spec.processor_of(raw)))


def write_donut_checkpoint(folder: Path) -> Path:
    """A small random Donut, which answers in tags of its own."""
    from zoo.models.vision_encoder_decoder import VisionEncoderDecoderConfig, VisionEncoderDecoderModel
    from zoo.saving import save_model

    names = ("menu", "nm", "price", "question", "answer")
    tags = [tag for name in names for tag in (f"<s_{name}>", f"</s_{name}>")]
    write_image_text_checkpoint(folder, None, more=["<s_cord-v2>", "<s_docvqa>", "<sep/>", "<yes/>", *tags])
    added = {one["content"]: one["id"] for one in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]}
    spec, end = SPECS["donut-base-finetuned-cord-v2"], added["<|end_of_text|>"]
    raw = config_of(spec, "tiny")
    start = {"decoder_start_token_id": added["<s_cord-v2>"]}
    raw["decoder"] |= {"vocab_size": max(added.values()) + 1, "eos_token_id": end, "pad_token_id": end, **start}
    raw["decoder"] |= {"forced_eos_token_id": None, "bos_token_id": end}
    model = VisionEncoderDecoderModel.from_config(VisionEncoderDecoderConfig.from_dict(raw))
    save_model(model, folder / "model")
    for file in ("config.json", "model.safetensors"):
        (folder / "model" / file).replace(folder / file)
    (folder / "preprocessor_config.json").write_text(json.dumps(spec.processor_of(raw)))
    (folder / "processor_config.json").unlink()
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end, "pad_token_id": end, **start}))
    return folder


def write_florence2_checkpoint(folder: Path) -> Path:
    """A small random Florence-2, which writes places as tokens."""
    places = [f"<loc_{n}>" for n in (0, 7, 250, 500, 998, 999)]
    write_image_text_checkpoint(folder, None, more=["<s>", "</s>", "<pad>", *places])
    _write_model(folder, "Florence-2-base", {"image_token_id": "<image>"})
    added = {one["content"]: one["id"] for one in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]}
    start = {"bos_token_id": added["<s>"], "eos_token_id": added["</s>"], "pad_token_id": added["<pad>"]}
    raw = json.loads((folder / "config.json").read_text())
    raw["text_config"] |= {**start, "decoder_start_token_id": added["</s>"]}
    (folder / "config.json").write_text(json.dumps(raw))
    stated: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "image_token": "<image>"}
    stated |= {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": {"image_token": "<image>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    rules = {name: {} for name in ("ocr", "pure_text", "description_with_bboxes", "bboxes", "polygons")}
    rules |= {"description_with_bboxes_or_polygons": {}, "phrase_grounding": {"banned_grounding_tokens": ["it"]}}
    (folder / "processor_config.json").write_text(
        json.dumps({"processor_class": "Florence2Processor", "post_processor_config": rules})
    )
    generation = {**start, "decoder_start_token_id": added["</s>"], "forced_bos_token_id": added["<s>"]}
    (folder / "generation_config.json").write_text(json.dumps({**generation, "num_beams": 3, "max_new_tokens": 12}))
    return folder
