"""A small random Idefics3 with a tokenizer, a chat template and a processor, as Granite Docling has them."""

from __future__ import annotations

import json
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


def write_image_text_checkpoint(folder: Path, template: str | None = TEMPLATE, positions: int = 600) -> Path:
    """A checkpoint whose answers are noise, among it special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    from zoo.models.idefics3 import Idefics3Config, Idefics3ForConditionalGeneration
    from zoo.saving import save_model

    vocab = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocab["ĊĊ"] = len(vocab)
    made = Tokenizer(models.BPE(vocab, [("Ċ", "Ċ")]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
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
    more = {"processor_class": "Idefics3Processor", "image_seq_len": 4}
    (folder / "processor_config.json").write_text(json.dumps(more))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end, "max_new_tokens": 12}))
    return folder


def write_llava_checkpoint(folder: Path) -> Path:
    """The same tokenizer and template with a small random LLaVA."""
    from zoo.models.llava import LlavaConfig, LlavaForConditionalGeneration
    from zoo.saving import save_model

    write_image_text_checkpoint(folder)
    added = {one["content"]: one["id"] for one in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]}
    spec = SPECS["llava-1.5-7b-hf"]
    raw, end = config_of(spec, "tiny"), added["<|end_of_text|>"]
    text = {**raw["text_config"], "vocab_size": max(added.values()) + 1, "initializer_range": 0.3}
    text |= {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    raw |= {"text_config": text, "image_token_index": added["<image>"]}
    model = LlavaForConditionalGeneration.from_config(LlavaConfig.from_dict(raw))
    save_model(model, folder / "model")
    for name in ("config.json", "model.safetensors"):
        (folder / "model" / name).replace(folder / name)
    (folder / "preprocessor_config.json").write_text(json.dumps(spec.processor_of(raw)))
    more = {"processor_class": "LlavaProcessor", "patch_size": 8, "num_additional_image_tokens": 1}
    more |= {"vision_feature_select_strategy": "default", "image_token": "<image>"}
    (folder / "processor_config.json").write_text(json.dumps(more))
    return folder
