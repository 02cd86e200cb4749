"""Fields that name code, files or addresses, and files that are too much."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from .case import SECRET, add, chat, copy, link, set_fields, touch, with_file

CODE = "would run the repository's code"
ASKS = "transformers runs it only with trust_remote_code=True"


def _field(name: str, says: str = "", file: str = "config.json", published: str = "", **fields: Any) -> None:
    add(name, CODE, partial(set_fields, file=file, **fields), says, published, ASKS)


_field("auto_map", published="CVE-2025-66448 (vLLM)", auto_map={"AutoModelForCausalLM": "evil.Evil"})
_field("auto_map of another repository", published="CVE-2026-22807 (vLLM)", auto_map={"AutoConfig": "a/b--evil.Evil"})
_field("auto_map of an unknown model", "model_type", model_type="evil", auto_map={"AutoConfig": "evil.Evil"})
_field("auto_map of a tokenizer", file="tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Evil", None]})
_field("auto_map of a processor", file="processor_config.json", auto_map={"AutoProcessor": "evil.Evil"})
_field("auto_map of images", file="preprocessor_config.json", auto_map={"AutoImageProcessor": "evil.Evil"})
_field("auto_map of a part", vision_config={"auto_map": {"AutoConfig": "evil.Evil"}}, published="CVE-2025-66448 (vLLM)")
_field("trust_remote_code", trust_remote_code=True, auto_map={"AutoModel": "evil.Evil"}, published="CVE-2026-5241")
_field("trust_remote_code of a part", text_config={"trust_remote_code": True}, published="CVE-2026-4944 (vLLM)")
_field("a kernel", _attn_implementation="other/repo:evil", published="CVE-2026-4372 (transformers before 5.3.0)")
_field("an internal kernel", _attn_implementation_internal="other/repo", published="CVE-2026-4372")
_field("a kernel's public field", attn_implementation="other/repo@main:evil", published="CVE-2026-4372")
_field("custom_generate", file="generation_config.json", custom_generate="evil")
_field("a class of a tokenizer", file="tokenizer_config.json", tokenizer_class="evil.Evil")
_field("a class of a model", "evil.Evil", architectures=["evil.Evil"])
_field("a class of images", file="preprocessor_config.json", image_processor_type="evil.Evil")
_field("a method of quantization", "quant_method", quantization_config={"quant_method": "evil", "modules": "evil"})
_field("custom_pipelines", custom_pipelines={"text-generation": {"impl": "evil.Evil", "pt": ["AutoModel"]}})
_field("a model_type that is a path", "model_type", model_type="../../evil")
_field("a class in a path of attributes", "__mro__", architectures=["__class__.__mro__"])


def _sentence_module(at: Path) -> None:
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]
    with_file(at, "modules.json", json.dumps(modules))


def _sentence_path(at: Path) -> None:
    kind = "sentence_transformers.models."
    modules = [{"idx": 0, "name": "0", "path": "", "type": f"{kind}Transformer"}]
    modules += [{"idx": 1, "name": "1", "path": "../..", "type": f"{kind}Pooling"}]
    with_file(at, "modules.json", json.dumps(modules))


SENTENCES = "sentence-transformers imports modules of its own package, and others with trust_remote_code"
add("modules.json that names code", CODE, _sentence_module, "evil.Evil", "", SENTENCES)
add("modules.json with a path", "would read another folder", _sentence_path, "..", "", SENTENCES)

# Addresses and paths in configs.

for _file, _name in (("config.json", "_name_or_path"), ("tokenizer_config.json", "name_or_path")):
    _value = {_name: f"../{SECRET}", "_commit_hash": "main", "vocab_file": f"../{SECRET}"}
    add(f"{_name} of another place", "would read another file", partial(set_fields, file=_file, **_value))
add(
    "a tokenizer's file elsewhere",
    "would read another file",
    partial(set_fields, file="tokenizer_config.json", tokenizer_file=f"../{SECRET}", chat_template_file=f"../{SECRET}"),
)
add(
    "an address in place of a name",
    "would ask a server",
    partial(set_fields, _name_or_path="http://127.0.0.1:9/x", base_model="http://127.0.0.1:9/y"),
)

# Links.  huggingface_hub's own cache has links, whose targets are inside of it.

LINKS = "transformers follows links, and prints parts of what it cannot parse"
for _name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors"):
    add(f"{_name} is a link", "would read a file outside", partial(link, name=_name), "a link out", "", LINKS)
add(
    "chat_template.jinja is a link",
    "would show a file to the model",
    partial(link, name="chat_template.jinja"),
    "a link out",
    "",
    LINKS,
    chat,
)
add(
    "a link to a device",
    "would read without end",
    partial(link, name="config.json", target="/dev/zero"),
    "a link out of its folder, to /dev/zero",
)


def _chain(at: Path) -> None:
    link(at, "config.json", "sub/config.json")
    (at / "sub").symlink_to("..")


def _fifo(at: Path) -> None:
    (copy(at) / "generation_config.json").unlink()
    os.mkfifo(at / "generation_config.json")


def _loop(at: Path) -> None:
    link(at, "config.json", "config.json")


add("a chain of links", "would read a file outside", _chain, "config.json", "", LINKS)
add("a link to itself", "would follow it without end", _loop, "config.json")
add("a FIFO in place of a file", "would wait for ever", _fifo)

# Numbers and shapes of JSON.


def _many_keys(at: Path) -> None:
    with_file(at, "config.json", json.dumps(dict.fromkeys(map(str, range(1_100_000)))))


MEMORY = "would take memory or time without bounds"
for _field_name, _number in (("vocab_size", 10**12), ("num_hidden_layers", 10**9), ("hidden_size", 2**62)):
    add(f"{_field_name} beyond any memory", MEMORY, partial(set_fields, **{_field_name: _number}), _field_name)
add("max_position_embeddings of 2^40", MEMORY, partial(set_fields, max_position_embeddings=2**40), "out of range")
add("rope of 10^9 positions", MEMORY, partial(set_fields, head_dim=10**9), "expected (8000000000, 64)")
add("JSON of 10^6 brackets", MEMORY, partial(with_file, name="config.json", data="[" * 10**6), "config.json")
add("JSON of one number", MEMORY, partial(with_file, name="config.json", data="9" * 10**7), "config.json")
add(
    "JSON with a key twice",
    "would mean two things",
    partial(with_file, name="config.json", data='{"model_type": "llama", "model_type": "gpt2"}'),
    "twice",
)
add("JSON of 10^6 keys", MEMORY, _many_keys, "config.json")
add("JSON with NaN", "would make sizes of no number", partial(set_fields, rms_norm_eps=float("nan")), "NaN")
add(
    "code beside the weights",
    "would run as it is unpickled",
    lambda at: [with_file(at, n, touch(at)) for n in ("training_args.bin", "optimizer.pt", "rng_state.pth")],
    "",
    "CVE-2026-1839 (transformers' Trainer)",
    "transformers has weights_only=True there since 5.0",
)
