"""Small synthetic tokenizer files in the formats of the hub: WordPiece, byte-level BPE and sentencepiece."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

WORDS = """
    the of and to in is that for it was on are as with they be at one have this from by hot word but what some you had
    which their said if will each about how up out them then she many these so her would make like him into time has
    look two more write go see no way could people my than first water been call who now find long down day did get
    come made may part over new sound take only little work know place year live me back give most very after thing
    our just name good sentence man think say great where help through much before line right too mean old any same
    tell boy follow came want show also around form three small set put end does another well large must big even
""".split()  # noqa: SIM905  (words, not quotes)
SCRIPTS = (
    "àâäçéèêëîïñóôöúùûüßœ¿¡абвгдежзийклмнопрстуфхцчшщъыьэюяαβγδεηικλμνοπρστυωابتجدرسعفقكلمنهويةаאבגדהולמרשת"
    "你好世界今天天气很人工智能学习的是在有我他这中大来上日本語のはにをたでとがこんちわ한국어안녕하세요नमस्तेकाहैमेंรสวัดี。，！？、…«»“”‘’—€£"
)
ASCII = "".join(map(chr, range(33, 127)))


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


# Where BERT's own vocabulary has some tokens, by which code knows them.
BERT_PLACES = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1012: ".", 1029: "?"}


def write_wordpiece(
    folder: Path, size: int, max_length: int, *, lower: bool = True, as_json: bool = False, placed: bool = False
) -> None:
    """vocab.txt of `size` lines; as_json: also a tokenizer.json, padding and cutting to 128 as MiniLM's does.

    placed: tokens that code knows by their ids are where BERT's own vocabulary has them.
    """
    letters = list(dict.fromkeys(ASCII + SCRIPTS))
    body = [*letters, *("##" + c for c in letters if c.isalnum()), *WORDS]
    tokens = _fill_to(["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], body, [], size, "[unused{}]")
    if placed:
        others = iter([token for token in tokens if token not in BERT_PLACES.values()])
        tokens = [BERT_PLACES[i] if i in BERT_PLACES else next(others) for i in range(size)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    config: dict[str, object] = {"do_lower_case": lower, "model_max_length": max_length}
    if as_json:
        config["tokenizer_class"] = "BertTokenizer"
        _wordpiece_json(folder / "tokenizer.json", tokens, lower)
    write_json(folder / "tokenizer_config.json", config)


def write_bpe(folder: Path, size: int, max_length: int, *, named: bool = False) -> None:
    """vocab.json and merges.txt in RoBERTa's order: <s>, <pad>, </s>, <unk>, ..., <mask> last.

    named: whether the other files say whose they are, as they do for TrOCR, whose config.json does not.
    """
    letters = _bytes_as_letters()
    tokens, merges = list(letters), []
    have = set(tokens)
    for word in WORDS:
        parts = [letters[32], *word]
        while len(parts) > 1:
            joined = parts[0] + parts[1]
            if joined not in have and len(tokens) < size - 5:
                have.add(joined)
                tokens.append(joined)
                merges.append(f"{parts[0]} {parts[1]}")
            parts = [joined, *parts[2:]]
    tokens = _fill_to(["<s>", "<pad>", "</s>", "<unk>"], tokens, ["<mask>"], size, "madeupword{:04d}")
    write_json(folder / "vocab.json", {token: i for i, token in enumerate(tokens)})
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    config: dict[str, object] = {"model_max_length": max_length}
    if named:
        roles = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>"}
        mask = {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True}
        tokens = {f"{role}_token": token for role, token in roles.items()}
        write_json(folder / "special_tokens_map.json", {**tokens, "mask_token": mask})
        config |= {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False, "trim_offsets": True}
    write_json(folder / "tokenizer_config.json", config)


def write_sentencepiece(folder: Path, size: int, max_length: int) -> None:
    """sentencepiece.bpe.model, a unigram ModelProto of size - 2 pieces: XLM-R itself adds <pad> and <mask>."""
    (folder / "sentencepiece.bpe.model").write_bytes(_unigram_model(["<unk>", "<s>", "</s>"], size - 2))
    config = {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": max_length}
    write_json(folder / "tokenizer_config.json", config)


def write_xlnet(folder: Path, size: int, max_length: int) -> None:
    """spiece.model, a unigram ModelProto with XLNet's special pieces."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    (folder / "spiece.model").write_bytes(_unigram_model(special, size))
    config: dict[str, object] = {"tokenizer_class": "XLNetTokenizer", "model_max_length": max_length}
    write_json(folder / "tokenizer_config.json", {**config, "do_lower_case": False})


def _unigram_model(special: list[str], size: int) -> bytes:
    """A ModelProto of `size` pieces, the first of them special."""
    letters = list(dict.fromkeys(ASCII + SCRIPTS))
    body = ["▁", *letters, *("▁" + word for word in WORDS), *WORDS]
    names = _fill_to(special, body, [], size, "▁madeup{}")
    kinds = {name: 2 if name == "<unk>" else 3 for name in special}  # unknown, control; all others are normal
    parts = []
    for i, name in enumerate(names):
        score = 0.0 if name in kinds else -3.0 - 0.01 * i - (6.0 if len(name) == 1 else 0.0)
        kind = b"" if name not in kinds else _number(3, kinds[name])
        parts.append(_field(1, _field(1, name.encode()) + _varint(2 << 3 | 5) + struct.pack("<f", score) + kind))
    parts.append(_field(2, _number(3, 1) + _number(40, 0) + _number(41, 1) + _number(42, 2)))  # unigram; unk, bos, eos
    parts.append(_field(3, _field(1, b"identity") + _number(3, 1) + _number(4, 1)))  # no charsmap: text stays as it is
    return b"".join(parts)


def write_unigram(folder: Path, size: int, max_length: int) -> None:
    """T5's tokenizer.json: a unigram model of pieces, and </s> after each text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = list(dict.fromkeys(ASCII + SCRIPTS))
    body = ["▁", *letters, *("▁" + word for word in WORDS), *WORDS]
    names = _fill_to(["<pad>", "</s>", "<unk>"], body, ["<extra_id_1>", "<extra_id_0>"], size, "▁madeup{}")
    scores = [0.0 if i < 3 else -3.0 - 0.01 * i - (6.0 if len(name) == 1 else 0.0) for i, name in enumerate(names)]
    made = Tokenizer(models.Unigram(list(zip(names, scores, strict=True)), unk_id=2))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.add_special_tokens([name for name in names if name.startswith("<")])
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    made.save(str(folder / "tokenizer.json"))
    config: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
    config |= {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    write_json(folder / "tokenizer_config.json", config)


def write_gemma(folder: Path, size: int, max_length: int) -> None:
    """Gemma's tokenizer.json: merges of letters with ▁ for a space, bytes for other letters, and <eos> after a text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    letters, merges = list(dict.fromkeys("▁" + ASCII + SCRIPTS)), []
    names = dict.fromkeys([*(f"<0x{byte:02X}>" for byte in range(256)), *letters])
    for word in WORDS:
        parts = ["▁", *word]
        while len(parts) > 1 and len(names) < size - 5:
            parts = ["".join(parts[:2]), *parts[2:]]
            if parts[0] not in names:
                merges.append((parts[0][:-1], parts[0][-1]))
                names[parts[0]] = None
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    vocabulary = {name: i for i, name in enumerate(_fill_to(special, names, [], size, "<unused{}>"))}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens(special)
    made.post_processor = processors.TemplateProcessing(
        single="$A <eos>", pair="$A <eos> $B <eos>", special_tokens=[("<eos>", 1)]
    )
    made.save(str(folder / "tokenizer.json"))
    config: dict[str, object] = {"tokenizer_class": "GemmaTokenizer", "padding_side": "right"}
    config["model_max_length"] = max_length
    write_json(folder / "tokenizer_config.json", config | {f"{name[1:-1]}_token": name for name in special})


def write_bytes(folder: Path, size: int, max_length: int) -> None:
    """ByT5's, which has no vocabulary: three special tokens, 256 bytes, and as many sentinels as there is room for."""
    config = {"tokenizer_class": "ByT5Tokenizer", "extra_ids": size - 259, "eos_token": "</s>", "pad_token": "<pad>"}
    write_json(folder / "tokenizer_config.json", {**config, "unk_token": "<unk>", "model_max_length": max_length})


WRITERS: dict[str, Callable[[Path, int, int], None]] = {
    "wordpiece": write_wordpiece,
    "wordpiece, cased": lambda folder, size, most: write_wordpiece(folder, size, most, lower=False),
    "wordpiece, json": lambda folder, size, most: write_wordpiece(folder, size, most, as_json=True),
    "wordpiece, with BERT's places": lambda folder, size, most: write_wordpiece(folder, size, most, placed=True),
    "bpe": write_bpe,
    "bpe, named": lambda folder, size, most: write_bpe(folder, size, most, named=True),
    "sentencepiece": write_sentencepiece,
    "unigram": write_unigram,
    "xlnet": write_xlnet,
    "gemma": write_gemma,
    "bytes": write_bytes,
}


def _fill_to(first: list[str], body: Iterable[str], last: list[str], size: int, filler: str) -> list[str]:
    """Exactly `size` different tokens: what of `body` there is room for, then made-up ones."""
    room = size - len(first) - len(last)
    body = [token for token in dict.fromkeys(body) if token not in first][:room]
    return [*first, *body, *(filler.format(i + 1) for i in range(room - len(body))), *last]


def _wordpiece_json(path: Path, tokens: list[str], lower: bool) -> None:
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    made = BertWordPieceTokenizer({token: i for i, token in enumerate(tokens)}, lowercase=lower)
    made.enable_truncation(128)
    made.enable_padding(length=128, pad_id=tokens.index("[PAD]"))
    made.save(str(path))


def _bytes_as_letters() -> list[str]:
    """GPT-2's printable letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    letters = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    return [letters[b] for b in range(256)]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)
