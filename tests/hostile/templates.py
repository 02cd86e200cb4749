"""Chat templates that are programs, and tokenizers that grow or never end."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from .case import SECRET, SOURCE, add, chat, copy, generate, set_fields, with_file

RENDERS = "would run code as it is rendered"
SANDBOX = "transformers renders in jinja2's sandbox, in its own process"
_POPEN = "popen('touch ../mark').read()"
OUT = {
    "globals of cycler": "{{ cycler.__init__.__globals__.os." + _POPEN + " }}",
    "globals of lipsum": "{{ lipsum.__globals__['os']." + _POPEN + " }}",
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "the template itself": "{{ self.__init__.__globals__.__builtins__.__import__('os')." + _POPEN + " }}",
    "the filter attr": "{{ ''|attr('__class__')|attr('__mro__') }}",
    "format": "{{ '{0.__class__.__mro__}'.format('') }}",
    "format by a filter": "{{ ['{0.__class__}']|map('format', '')|list }}{{ ''.format.__self__.__class__ }}",
    "map of an attribute": "{{ messages|map(attribute='__class__.__mro__')|list|first|first }}",
    "a namespace": "{% set n = namespace() %}{{ n.__class__.__init__.__globals__ }}",
    "raise_exception": "{{ raise_exception.__globals__ }}",
    "strftime_now": "{{ strftime_now.__globals__ }}",
    "a macro's caller": "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "include": "{% include '../" + SECRET + "' %}",
    "import": "{% import '/etc/passwd' as x %}{{ x }}",
    "extends": "{% extends '../" + SECRET + "' %}",
}
_WHERE = {
    "globals of cycler": "CVE-2024-34359 (llama-cpp-python), CVE-2026-5760 (SGLang)",
    "the filter attr": "CVE-2025-27516 (jinja2 before 3.1.6)",
    "format by a filter": "CVE-2024-56326 (jinja2 before 3.1.5)",
}
for _name, _source in OUT.items():
    _write = partial(with_file, name="chat_template.jinja", data=_source)
    add(f"a template with {_name}", RENDERS, _write, "chat template", _WHERE.get(_name, ""), SANDBOX, chat)

BOMBS = {
    "2^40 steps": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a text of 10 GB": "{{ 'a' * 10000000000 }}",
    "a width of 10^10": "{{ '%10000000000d'|format(1) }}",
    "a power tower": "{{ 9 ** 9 ** 9 }}",
    "lists that double": "{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "macros that call themselves": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "10^5 nested ifs": "{% if true %}" * 100_000,
}
for _name, _source in BOMBS.items():
    _write = partial(with_file, name="chat_template.jinja", data=_source)
    add(f"a template with {_name}", "would take all time or memory", _write, "template", "", SANDBOX, chat)


def _in_config(at: Path) -> None:
    set_fields(at, "tokenizer_config.json", chat_template=[{"name": "default", "template": OUT["globals of lipsum"]}])


def _in_folder(at: Path) -> None:
    with_file(at, "additional_chat_templates/default.jinja", OUT["globals of lipsum"])
    with_file(at, "chat_template.jinja", "{{ messages[0].content }}")


add("a template in a list of a config", RENDERS, _in_config, "chat template", "", SANDBOX, chat)
add("a template of another name", RENDERS, _in_folder, "chat template", "", SANDBOX, chat)

# Tokenizers.

GROWS = "would take memory or time without bounds"


def _tokenizer(at: Path, **parts: Any) -> None:
    given = json.loads((SOURCE / "tokenizer.json").read_text(encoding="utf-8"))
    with_file(at, "tokenizer.json", json.dumps({**given, **parts}))


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def long_text(at: Path) -> Any:
    return generate_text(at, "a" * 3000 + "!")


def generate_text(at: Path, text: str) -> Any:
    import zoo

    return zoo.load(at).tokenizer(text)


REGEX = "transformers runs the pattern; oniguruma gives up after a number of steps"
for _name, _pattern in {"nested repeats": "(a+)+$", "alternatives": "(a|a)*$", "back references": r"(a*)\1\1$"}.items():
    _write = partial(_tokenizer, pre_tokenizer=_split(_pattern))
    add(f"a pattern with {_name}", GROWS, _write, "tokenizer.json", "", REGEX, long_text)
for _name, _parts in {
    "22 replacements that double": {
        "normalizer": {"type": "Sequence", "normalizers": [_replace("a", "aa")] * 22},
    },
    "a replacement by 10 MB": {"normalizer": _replace("a", "a" * (10 << 20))},
    "an unknown part": {"pre_tokenizer": {"type": "evil.Evil"}},
    "a rule table out of bounds": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////fw=="}},
    "a template of unknown tokens": {
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "?", "type_id": 0}}]},
    },
    "parts 10^4 deep": {"normalizer": json.loads('{"type": "Sequence", "normalizers": [' * 400 + "]}" * 400)},
}.items():
    add(f"a tokenizer with {_name}", GROWS, partial(_tokenizer, **_parts), "tokenizer.json", "", "", long_text)
add(
    "a tokenizer of 200,000 added tokens",
    GROWS,
    lambda at: _tokenizer(at, added_tokens=[{"id": i, "content": f"t{i}", "special": False} for i in range(200_000)]),
    "tokenizer.json",
)


def _sentencepiece(at: Path) -> None:
    (copy(at) / "tokenizer.json").unlink()
    (at / "tokenizer.model").write_bytes(b"\x0a\xff\xff\xff\xff\x0f")


add("a sentencepiece model with a length of 4 GB", GROWS, _sentencepiece, "tokenizer.model", "", "", generate)


def _number(at: Path) -> None:
    _tokenizer(at, added_tokens=[{"id": 2**60, "content": "<evil>", "special": True}])


add("a tokenizer with an id of 2^60", GROWS, _number, "", "", "tokenizers: an id is a u32", long_text)
