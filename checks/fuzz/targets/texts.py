"""Tokenizers and templates."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from .. import mutate
from .target import DATA, STORIES, TARGETS, Target, as_json, tolerant, write


def tokenizers() -> list[bytes]:
    paths = [*sorted((DATA / "tokenizers").rglob("tokenizer.json")), STORIES / "tokenizer.json"]
    small = [path.read_bytes() for path in paths if path.stat().st_size < 1 << 16]
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "the": 5, "a": 6, "##b": 7}
    special = [
        {
            "id": i,
            "content": t,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for t, i in list(words.items())[:5]
    ]
    bert = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": words,
        },
    }
    pieces = [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], ["\u2581", -2.0], ["a", -3.0], ["b", -4.0]]
    unigram = {
        **bert,
        "added_tokens": [],
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    }
    unigram |= {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}],
        }
    }
    unigram |= {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    }
    unigram |= {"model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}}
    bpe = {
        **unigram,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    }
    bpe |= {"decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}}
    bpe |= {
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "vocab": {"a": 0, "b": 1, "ab": 2},
            "merges": ["a b"],
        }
    }
    return [*small, *map(as_json, (bert, unigram, bpe))]


def _tokenizer(data: bytes, at: Path) -> None:
    from zoo.text.tokenizer import Tokenizer

    write(at, "tokenizer.json", data)
    tokenizer = Tokenizer.from_folder(at)
    tokenizer(["a the ab", "b" * 60, ""], truncation=True, max_length=8)
    tokenizer.decode([0, 1, 2])


_COMPONENTS = [
    "Replace",
    "Split",
    "Sequence",
    "ByteLevel",
    "Metaspace",
    "Precompiled",
    "Prepend",
    "NFKC",
    "Unigram",
    "BPE",
    "WordPiece",
]
TARGETS["tokenizer.json"] = Target(
    tokenizers,
    mutate.of_json([*_COMPONENTS, {"Regex": "(a|b)*"}, {"Regex": "("}, {"type": "NFD"}, "Isolated"]),
    _tokenizer,
    weight=2,
)


def _tokenizer_files(data: bytes, at: Path) -> None:
    from zoo.text.tokenizer import Tokenizer

    shutil.rmtree(at)
    at.mkdir()
    for name, value in json.loads(data).items():
        if name in ("vocab.txt", "merges.txt") and isinstance(value, str):
            write(at, name, value.encode("utf-8", "surrogatepass"))
        elif name in ("vocab.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
            write(at, name, as_json(value))
    tokenizer = Tokenizer.from_folder(at)
    tokenizer(["a the ab", "b" * 60, ""], truncation=True, max_length=8)


def _tokenizer_files_seeds() -> list[bytes]:
    words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\na\n##b\n"
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": 16,
        "added_tokens_decoder": {"0": {"content": "[PAD]", "special": True}},
    }
    special = {
        "pad_token": "[PAD]",
        "mask_token": {"content": "[MASK]", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False},
    }
    bert = {
        "vocab.txt": words,
        "tokenizer_config.json": config,
        "special_tokens_map.json": special,
        "added_tokens.json": {"new": 8},
    }
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "a": 5, "b": 6, "ab": 7}
    roberta = {
        "vocab.json": vocab,
        "merges.txt": "#version: 0.2\na b\n",
        "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True},
    }
    return [as_json(bert), as_json(roberta)]


TARGETS["tokenizer-files"] = Target(
    _tokenizer_files_seeds,
    mutate.of_json(["BertTokenizerFast", "RobertaTokenizer", "XLMRobertaTokenizer", "<mask>", "[CLS]"]),
    tolerant(lambda data, at: _tokenizer_files(data, at) if isinstance(json.loads(data), dict) else None),
)


def _sentencepiece_seeds() -> list[bytes]:
    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2, len(body)]) + body

    pieces = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("\u2581a", 1), ("b", 1)]
    out = b"".join(
        field(1, field(1, t.encode()) + b"\x15" + struct.pack("<f", -1.0) + b"\x18" + bytes([k])) for t, k in pieces
    )
    out += field(2, b"\x18\x01")
    return [out, out + field(3, b"\x0a\x04nmt_" + field(2, bytes(16)))]


def _sentencepiece(data: bytes, at: Path) -> None:
    from zoo.text.sentencepiece_model import read_sentencepiece
    from zoo.text.tokenizer import Tokenizer

    read_sentencepiece(data, write(at, "sentencepiece.bpe.model", data))
    write(at, "tokenizer_config.json", b'{"tokenizer_class": "XLMRobertaTokenizer"}')
    Tokenizer.from_folder(at)(["a b"])


TARGETS["sentencepiece"] = Target(
    _sentencepiece_seeds, mutate.of_bytes([b"\x0a\xff\xff\xff\xff\x0f", b"\x80" * 11, b"\x18\x7f"]), _sentencepiece
)

TEMPLATE = """{% for message in messages %}{% if message['role'] == 'user' %}
{{ '<|user|>' + message['content'] | trim }}
{%- elif loop.first and message.role in ['system'] %}
{{ raise_exception('no') if false else message | tojson }}{% endif %}
{%- endfor %}{% set ns = namespace(x=[1, 2]) %}{% set ns.x = ns.x + [3] %}{{ ns.x | length }}{{ strftime_now('%Y') }}
{%- macro m(a, b=2) %}{{ a ~ b }}{% endmacro %}{{ m(1) }}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
_JINJA = [
    "{{ '%999999999d' % 1 }}",
    "{% for i in range(99999999) %}",
    "{% endfor %}",
    "{{ [0] * 99999999 }}",
    "{{ 'a' * 99999999 }}",
]
_JINJA += [
    "{{ ''.__class__ }}",
    "{{ messages.__class__.__mro__ }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ x.y.z }}",
    "{% set x = [x, x] %}",
]
_JINJA += [
    "{{ '{0.__class__}'.format(1) }}",
    "{{ 'a'.join(['b'] * 9999) }}",
    "{% include 'x' %}",
    "{% import 'os' as o %}",
    "{% raw %}",
]
_JINJA += [
    "{{ (1).to_bytes(999999999) }}",
    "{{ 'a'.ljust(999999999) }}",
    "{{ messages | map(attribute='role') | list }}",
    "{{ m(m) }}",
]
_JINJA += [
    "{{ cycler.__init__ }}",
    "{{ self }}",
    "{{ lipsum() }}",
    "{{ loop(messages) }}",
    "| attr('x')",
    "| format",
    "[::-1]",
    "(",
    "}}",
    "~",
]


def _template(data: bytes, at: Path) -> None:
    from zoo.text import template as rendering
    from zoo.text.chat import ChatTemplate
    from zoo.text.tokenizer import Tokenizer

    known = TARGETS["template"].found
    if "tokenizer" not in known:
        known["tokenizer"] = Tokenizer.from_folder(STORIES)
        # One process for all inputs: to start another takes longer than to render.
        process = rendering.process_of("")
        rendering.process_of = lambda source: process  # type: ignore[assignment]
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": " hi "}]
    template = ChatTemplate({"default": data.decode("utf-8", "replace")}, known["tokenizer"])
    template.render(messages, add_generation_prompt=True)


TARGETS["template"] = Target(
    lambda: [TEMPLATE.encode(), b"{{ messages[0].content }}"],
    mutate.of_text(r"\{%.*?%\}|\{\{.*?\}\}|\w+|[|.()\[\]]", _JINJA),
    _template,
    prepare=lambda at: _template(TEMPLATE.encode(), at),
    seconds=10,
    starts=True,
)
