"""The tokenizer classes of transformers: their tokens, files and parts, and which one a checkpoint has.

transformers 5 makes these tokenizers anew from the vocabulary in a file and the settings in tokenizer_config.json, also
where a tokenizer.json has parts of its own.  Classes that are not here, and files that name none, are as tokenizer.json
has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder
from . import post_processors
from . import tokenizer_parts as parts
from .languages import FLORES, LANGUAGES, LANGUAGES_50
from .sentencepiece_model import NORMAL
from .tokenizer_parts import Part, Settings
from .vocabulary_files import Vocabulary, byte_level_bpe, require, sentencepiece, wordpiece

_PRINTABLE_BYTES = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHER_BYTES = [byte for byte in range(256) if byte not in _PRINTABLE_BYTES]
# The character that the library's ByteLevel has for each byte: itself, or one from 256 on.
BYTE_SYMBOLS = [chr(byte if byte in _PRINTABLE_BYTES else 256 + _OTHER_BYTES.index(byte)) for byte in range(256)]
MAX_EXTRA = 10_000  # tokens of a kind that a file may add by a number
Symbol = tuple[str, bool]  # a token that is never cut, and True if it is special


class VocabularyFile(NamedTuple):
    """A file of a class's vocabulary, and what else decides its tokens."""

    folder: CheckpointFolder
    name: str
    roles: Mapping[str, str]
    config: Mapping[str, Any]  # tokenizer_config.json


@dataclass(frozen=True)
class TokenizerClass:
    """A row of the table: the class's defaults, and its parts."""

    roles: Mapping[str, str]
    kind: str  # its model's: "BPE"
    make: Callable[[Settings], Part]  # -> the model's options, normalizer, pre_tokenizer, decoder
    post_processor: post_processors.Maker
    file: str  # the vocabulary's
    read: Callable[[VocabularyFile], Vocabulary]
    typed: bool = False  # True if the second text gets segment 1
    padding_side: Literal["left", "right"] = "right"
    model_max_length: int | None = None  # tokens
    flags: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)  # role -> those of its token, if not stated
    flags_of_files: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)  # where there is no tokenizer.json
    # Makes what is done to a text before all else; it is given the backend, too, with all added tokens.
    prepare: Callable[[Settings, Any], Callable[[str], str]] | None = None
    is_plain: bool = False  # True if its special tokens lose the flags that files state
    extra: Callable[[Settings], list[Symbol]] | None = None  # special tokens beside the roles, where no file states any
    languages: tuple[str, ...] = ()  # the tokens that say a text's language
    leaves_out_bytes: bool = False  # True if texts of ids are without the bytes that are no UTF-8


def _read_wordpiece(file: VocabularyFile) -> Vocabulary:
    found = wordpiece(file.folder, file.name)
    require(found.path, found.model["vocab"], [file.roles[role] for role in ("unk", "cls", "sep")])
    return found


def _read_words(file: VocabularyFile) -> Vocabulary:
    found = wordpiece(file.folder, file.name)
    require(found.path, found.model["vocab"], [file.roles[role] for role in ("unk", "cls", "eos")])
    return found._replace(model={**found.model, "type": "WordLevel"})


def _read_roberta(file: VocabularyFile) -> Vocabulary:
    return byte_level_bpe(file.folder, file.name, required=[file.roles["cls"], file.roles["sep"]])


def _read_merges(file: VocabularyFile) -> Vocabulary:
    return byte_level_bpe(file.folder, file.name)


def _read_bpe(file: VocabularyFile) -> Vocabulary:
    return sentencepiece(file.folder, file.name, "BPE")


def _read_unigram(file: VocabularyFile) -> Vocabulary:
    return sentencepiece(file.folder, file.name, "Unigram")


def _read_deberta(file: VocabularyFile) -> Vocabulary:
    found = sentencepiece(file.folder, file.name, "Unigram")
    pieces = {text: i for i, (text, _) in enumerate(found.model["vocab"])}
    require(found.path, pieces, [file.roles["cls"], file.roles["sep"]])
    return found


def _read_bytes(file: VocabularyFile) -> Vocabulary:
    """Each byte is a token, after three special ones."""
    begin = [file.roles[role] for role in ("pad", "eos", "unk")]
    vocab = {token: i for i, token in enumerate([*begin, *BYTE_SYMBOLS])}
    return Vocabulary(file.folder.where(file.name), {"type": "BPE", "vocab": vocab, "merges": []})


def _read_code_points(file: VocabularyFile) -> Vocabulary:
    """Each character is a token, whose id is its code point; surrogates are none."""
    vocab = {chr(i): i for i in range(0x110000) if not 0xD800 <= i < 0xE000}
    return Vocabulary(file.folder.where(file.name), {"type": "WordLevel", "vocab": vocab})


def text_of_bytes(tokens: Iterable[str]) -> str:
    """The text of bytes, and of tokens beside them, without the bytes that are no UTF-8."""
    parts = (bytes([BYTE_SYMBOLS.index(t)]) if len(t) == 1 and t in BYTE_SYMBOLS else t.encode() for t in tokens)
    return b"".join(parts).decode(errors="ignore")


def _fairseq_reader(*more: str) -> Any:
    """The reader of a model in fairseq's order of ids: four special tokens, its own after three, `more`, the mask."""

    def read(file: VocabularyFile) -> Vocabulary:
        found = sentencepiece(file.folder, file.name, "Unigram")
        pieces = found.model["vocab"]
        first = [text for text, _ in pieces[:3]]
        own = found.source.pieces[:3] if found.source else []
        if first != ["<unk>", "<s>", "</s>"] and any(piece.kind == NORMAL for piece in own):
            raise TokenizerError(f"{found.path}: starts with the pieces {first}, expected <unk>, <s>, </s> (fairseq's)")
        begin = [file.roles.get("bos", file.roles["cls"]), *(file.roles[role] for role in ("pad", "eos", "unk"))]
        return _with_tokens(found, begin, pieces[3:], [*more, file.roles["mask"]])

    return read


def _with_tokens(found: Vocabulary, before: list[str], pieces: list[Any], after: list[str]) -> Vocabulary:
    """A vocabulary of Unigram with tokens of the score 0 before and after pieces."""
    vocab = [*((token, 0.0) for token in before), *pieces, *((token, 0.0) for token in after)]
    return found._replace(model={**found.model, "vocab": vocab})


def _read_nllb(file: VocabularyFile) -> Vocabulary:
    """A model of BPE in fairseq's order of ids: four special tokens, and its own after three."""
    found = sentencepiece(file.folder, file.name, "BPE")
    own = list(found.model["vocab"])
    if own[:3] != ["<unk>", "<s>", "</s>"]:
        raise TokenizerError(f"{found.path}: starts with the pieces {own[:3]}, expected <unk>, <s>, </s> (fairseq's)")
    tokens = [*(file.roles[role] for role in ("bos", "pad", "eos", "unk")), *own[3:]]
    return found._replace(model={**found.model, "vocab": {token: i for i, token in enumerate(tokens)}})


def _read_camembert(file: VocabularyFile) -> Vocabulary:
    found = sentencepiece(file.folder, file.name, "Unigram")
    unused = ("<unk>NOTUSED", -100.0)
    begin = ["<s>NOTUSED", file.roles["pad"], "</s>NOTUSED", file.roles["unk"]]
    return _with_tokens(found, begin, [unused, *found.model["vocab"][1:]], [file.roles["mask"]])


def _read_t5(file: VocabularyFile) -> Vocabulary:
    found = sentencepiece(file.folder, file.name, "Unigram")
    return _with_tokens(found, [], found.model["vocab"], _sentinels(file.config)[::-1])


def _read_pegasus(file: VocabularyFile) -> Vocabulary:
    found = sentencepiece(file.folder, file.name, "Unigram")
    masks = [file.config.get("mask_token", "<mask_1>"), file.config.get("mask_token_sent", "<mask_2>")]
    texts = [mask.get("content") if isinstance(mask, dict) else mask for mask in masks if mask is not None]
    unused = [(f"<unk_{i}>", -100.0) for i in range(2, _number(file.config, "offset", 103))]
    begin = [file.roles["pad"], file.roles["eos"], *dict.fromkeys(texts)]
    return _with_tokens(found, begin, [*unused, *found.model["vocab"][2:]], [])


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_EXTRA:
        raise TokenizerError(f"tokenizer_config.json: {name} is {value!r}, expected a whole number up to {MAX_EXTRA}")
    return value


def _sentinels(config: Mapping[str, Any], default: int = 100) -> list[str]:
    return [f"<extra_id_{i}>" for i in range(_number(config, "extra_ids", default))]


def _as_special(tokens: Iterable[str]) -> list[Symbol]:
    return [(token, True) for token in tokens]


def _symbols_or(*tokens: str) -> Callable[[Settings], list[Symbol]]:
    return lambda s: list(s.vocabulary.symbols) if s.vocabulary.source else _as_special(tokens)


def _extra_of_t5(s: Settings) -> list[Symbol]:
    symbols = list(s.vocabulary.symbols)
    return (
        symbols
        if any("<extra_id_" in token for token, _ in symbols)
        else [*symbols, *_as_special(_sentinels(s.config))]
    )


def _extra_of_pegasus(s: Settings) -> list[Symbol]:
    sentence = s.config.get("mask_token_sent", "<mask_1>")
    unused = (f"<unk_{i}>" for i in range(2, _number(s.config, "offset", 103)))
    return _as_special([*([] if sentence is None else [sentence]), *unused])


def _extra_of_mbart(s: Settings) -> list[Symbol]:
    return [*_as_special(LANGUAGES), *(symbol for symbol in s.vocabulary.symbols if symbol[0] not in LANGUAGES)]


def _extra_of_mbart50(s: Settings) -> list[Symbol]:
    return [*s.vocabulary.symbols, *_as_special(LANGUAGES_50)]


_BRACKETS = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
_ANGLES = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
_END = {"unk": "<|endoftext|>", "bos": "<|endoftext|>", "eos": "<|endoftext|>"}
_COHERE = {
    "bos": "<BOS_TOKEN>",
    "eos": "<|END_OF_TURN_TOKEN|>",
    "unk": "<UNK>",
    "sep": "<SEP>",
    "pad": "<PAD>",
    "cls": "<CLS>",
    "mask": "<MASK_TOKEN>",
}
_GEMMA = {"unk": "<unk>", "bos": "<bos>", "eos": "<eos>", "pad": "<pad>", "mask": "<mask>"}
_T5 = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}
# The mask takes the space before it along, as a word's token would.  transformers 5.23 forgets that for RoBERTa where
# there is a vocabulary alone; transformers 4 and the Hub's own files have it.
_MASK_FLAGS = {"mask": {"lstrip": True}}
_SPM, _VOCAB = "sentencepiece.bpe.model", "vocab.json"
_PADS_LEFT: Any = {"padding_side": "left"}

_BERT = TokenizerClass(
    _BRACKETS, "WordPiece", parts.bert, post_processors.cls_sep, "vocab.txt", _read_wordpiece, typed=True
)
_ROBERTA = TokenizerClass(
    _ANGLES, "BPE", parts.byte_level_bpe, post_processors.roberta, _VOCAB, _read_roberta, flags_of_files=_MASK_FLAGS
)
_LLAMA_ROLES = {"unk": "<unk>", "bos": "<s>", "eos": "</s>"}
_LLAMA = TokenizerClass(
    _LLAMA_ROLES, "BPE", parts.llama, post_processors.of_file, "tokenizer.model", _read_bpe, **_PADS_LEFT
)
_GEMMA_CLASS = TokenizerClass(
    _GEMMA, "BPE", parts.gemma, post_processors.of_file, "tokenizer.model", _read_bpe, **_PADS_LEFT
)
_XLM = TokenizerClass(_ANGLES, "Unigram", parts.xlm_roberta, post_processors.bos_eos, _SPM, _fairseq_reader())
_DEBERTA_ROLES = {**_BRACKETS, "bos": "[CLS]", "eos": "[SEP]"}
_ALBERT_ROLES = {**_DEBERTA_ROLES, "unk": "<unk>", "pad": "<pad>"}

CLASSES: dict[str, TokenizerClass] = {
    # BERT's under other names, and RoBERTa's, in checkpoints that older versions saved.
    **dict.fromkeys(("BertTokenizer", "ElectraTokenizer", "ConvBertTokenizer", "MobileBertTokenizer"), _BERT),
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer"), _ROBERTA),
    "LayoutLMv3Tokenizer": replace(_ROBERTA, make=parts.layoutlmv3, post_processor=post_processors.layoutlmv3),
    # Its two tokens mark the entities that a text is about.
    "LukeTokenizer": replace(
        _ROBERTA, post_processor=post_processors.luke, extra=lambda s: _as_special(("<ent>", "<ent2>"))
    ),
    "DebertaTokenizer": TokenizerClass(
        {**_BRACKETS, "bos": "[CLS]", "eos": "[SEP]"},
        "BPE",
        parts.byte_level_bpe,
        post_processors.cls_sep_sep,
        _VOCAB,
        _read_roberta,
        typed=True,
    ),
    # Every token of its vocabulary is one that is never cut.
    "EsmTokenizer": TokenizerClass(
        {"unk": "<unk>", "cls": "<cls>", "pad": "<pad>", "mask": "<mask>", "eos": "<eos>"},
        "WordLevel",
        parts.esm,
        post_processors.cls_eos,
        "vocab.txt",
        _read_words,
        extra=lambda s: [(token, False) for token in s.vocabulary.model["vocab"]],
    ),
    "DistilBertTokenizer": replace(_BERT, typed=False),
    "MPNetTokenizer": replace(
        _BERT,
        roles={**_ANGLES, "unk": "[UNK]"},
        post_processor=post_processors.mpnet,
        typed=False,
        flags=_MASK_FLAGS,
    ),
    "GPT2Tokenizer": TokenizerClass(_END, "BPE", parts.byte_level_bpe, post_processors.of_file, _VOCAB, _read_merges),
    "CohereTokenizer": TokenizerClass(
        _COHERE, "BPE", parts.cohere, post_processors.of_file, _VOCAB, _read_merges, **_PADS_LEFT
    ),
    "WhisperTokenizer": TokenizerClass(
        _END, "BPE", parts.byte_level_bpe, post_processors.whisper, _VOCAB, _read_merges
    ),
    "GPTNeoXTokenizer": TokenizerClass(
        {**_END, "pad": "<|padding|>"}, "BPE", parts.gpt_neox, post_processors.by_flags, _VOCAB, _read_merges
    ),
    "Qwen2Tokenizer": TokenizerClass(
        dict.fromkeys(("unk", "eos", "pad"), "<|endoftext|>"),
        "BPE",
        parts.qwen2,
        post_processors.of_file,
        _VOCAB,
        _read_merges,
        is_plain=True,
    ),
    "CLIPTokenizer": TokenizerClass(
        {**_END, "bos": "<|startoftext|>", "pad": "<|endoftext|>"},
        "BPE",
        parts.clip,
        post_processors.clip,
        _VOCAB,
        _read_merges,
    ),
    **dict.fromkeys(("LlamaTokenizer", "Phi3Tokenizer"), _LLAMA),
    "GemmaTokenizer": _GEMMA_CLASS,
    "Siglip2Tokenizer": replace(_GEMMA_CLASS, make=parts.siglip2),
    "XLMRobertaTokenizer": _XLM,
    "CamembertTokenizer": replace(
        _XLM,
        make=parts.camembert,
        read=_read_camembert,
        flags=_MASK_FLAGS,
        extra=_symbols_or("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"),
    ),
    "MBartTokenizer": replace(
        _XLM,
        make=parts.mbart,
        post_processor=post_processors.language_last,
        read=_fairseq_reader(*LANGUAGES),
        flags=_MASK_FLAGS,
        extra=_extra_of_mbart,
        languages=LANGUAGES,
    ),
    "MBart50Tokenizer": replace(
        _XLM,
        roles={role: token for role, token in _ANGLES.items() if role != "bos"},
        make=parts.mbart50,
        post_processor=post_processors.language_first,
        read=_fairseq_reader(*LANGUAGES_50),
        flags=_MASK_FLAGS,
        extra=_extra_of_mbart50,
        languages=LANGUAGES_50,
    ),
    "NllbTokenizer": TokenizerClass(
        _ANGLES,
        "BPE",
        parts.nllb,
        post_processors.nllb,
        _SPM,
        _read_nllb,
        flags=_MASK_FLAGS,
        extra=_symbols_or(*FLORES),
        languages=FLORES,
    ),
    "DebertaV2Tokenizer": TokenizerClass(
        _DEBERTA_ROLES, "Unigram", parts.deberta_v2, post_processors.cls_sep, "spm.model", _read_deberta, typed=True
    ),
    "AlbertTokenizer": TokenizerClass(
        _ALBERT_ROLES, "Unigram", parts.albert, post_processors.albert, "spiece.model", _read_unigram
    ),
    "BigBirdTokenizer": TokenizerClass(
        {**_ANGLES, "sep": "[SEP]", "cls": "[CLS]", "mask": "[MASK]"},
        "Unigram",
        parts.big_bird,
        post_processors.cls_sep,
        "spiece.model",
        _read_unigram,
        flags=_MASK_FLAGS,
    ),
    "T5Tokenizer": TokenizerClass(
        _T5, "Unigram", parts.t5, post_processors.one_each, "spiece.model", _read_t5, extra=_extra_of_t5
    ),
    "ByT5Tokenizer": TokenizerClass(
        _T5,
        "bytes",  # which no tokenizer.json has
        parts.byt5,
        post_processors.one_each,
        "tokenizer_config.json",  # all that there is
        _read_bytes,
        flags={role: {"lstrip": True, "rstrip": True} for role in _T5},
        extra=lambda s: _as_special(_sentinels(s.config, 125)),
        prepare=parts.ByT5Texts,
        leaves_out_bytes=True,
    ),
    "CanineTokenizer": TokenizerClass(
        {"bos": "\ue000", "eos": "\ue001", "sep": "\ue001", "pad": "\0", "cls": "\ue000", "mask": "\ue003"},
        "code points",  # which no tokenizer.json has
        parts.canine,
        post_processors.cls_sep_one_segment,
        "tokenizer_config.json",  # all that there is
        _read_code_points,
        model_max_length=2048,
        extra=lambda s: [],
    ),
    "SiglipTokenizer": TokenizerClass(
        {**_T5, "pad": "</s>"},
        "SentencePiece",  # which no tokenizer.json has
        parts.siglip,
        post_processors.one_each,
        "spiece.model",
        _read_unigram,
        model_max_length=64,
        flags={role: {"lstrip": True, "rstrip": True} for role in ("eos", "unk", "pad")},
        prepare=parts.SiglipTexts,
        extra=lambda s: [],  # those of the model are pieces as any other
    ),
    "PegasusTokenizer": TokenizerClass(
        {**_T5, "mask": "<mask_2>"},
        "Unigram",
        parts.pegasus,
        post_processors.one_eos,
        "spiece.model",
        _read_pegasus,
        extra=_extra_of_pegasus,
    ),
    "XLNetTokenizer": TokenizerClass(
        {**_ANGLES, "sep": "<sep>", "cls": "<cls>"},
        "Unigram",
        parts.xlnet,
        post_processors.xlnet,
        "spiece.model",
        _read_unigram,
        flags=_MASK_FLAGS,
        extra=_symbols_or("<eop>", "<eod>"),
        **_PADS_LEFT,
    ),
}

# model_type in config.json -> the class where tokenizer_config.json names none, or TokenizersBackend: as the file is.
BACKEND = "TokenizersBackend"
CLASS_OF_MODEL: dict[str, str] = {
    **dict.fromkeys(
        (
            *("bert", "electra", "distilbert", "nomic_bert", "ernie", "megatron-bert", "blip", "chinese_clip", "align"),
            *("grounding-dino", "mm-grounding-dino"),
        ),
        "BertTokenizer",
    ),
    **dict.fromkeys(
        ("roberta", "roberta-prelayernorm", "bart", "clap", "data2vec-text", "longformer"), "RobertaTokenizer"
    ),
    **dict.fromkeys(("xlm-roberta", "gte", "jina_embeddings_v3", "metaclip_2", "trocr"), "XLMRobertaTokenizer"),
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "codegen", "opt", "starcoder2", "phi"), "GPT2Tokenizer"),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe"), "Qwen2Tokenizer"),
    **dict.fromkeys(("internvl", "lighton_ocr", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"), "Qwen2Tokenizer"),
    **dict.fromkeys(("t5", "mt5", "switch_transformers"), "T5Tokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "gemma3_text"), "GemmaTokenizer"),
    **dict.fromkeys(
        ("mistral", "mixtral", "granite", "olmo2", "olmo3", "modernbert", "phi3", "glm4", "stablelm"), BACKEND
    ),
    **dict.fromkeys(("ernie4_5", "got_ocr2", "llava", "paddleocr_vl", "smolvlm", "umt5"), BACKEND),
    **dict.fromkeys(
        (
            "glm",
            "gpt_bigcode",
            "ministral",
            "ministral3",
            "mistral3",
            "modernbert-decoder",
            "nemotron",
            "xlm-roberta-xl",
        ),
        BACKEND,
    ),
    "albert": "AlbertTokenizer",
    "big_bird": "BigBirdTokenizer",
    "florence2": "BartTokenizer",
    "camembert": "CamembertTokenizer",
    "canine": "CanineTokenizer",
    **dict.fromkeys(("clip", "clipseg", "owlvit", "owlv2"), "CLIPTokenizer"),
    "cohere": "CohereTokenizer",
    "cohere2": "CohereTokenizer",
    "deberta": "DebertaTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "esm": "EsmTokenizer",
    **dict.fromkeys(("gpt_neox", "mamba2", "mpt", "olmo", "olmoe"), "GPTNeoXTokenizer"),
    "layoutlmv3": "LayoutLMv3Tokenizer",
    "led": "LEDTokenizer",
    "luke": "LukeTokenizer",
    "m2m_100": "M2M100Tokenizer",
    "marian": "MarianTokenizer",
    "mbart": "MBartTokenizer",
    "mobilebert": "MobileBertTokenizer",
    "mpnet": "MPNetTokenizer",
    "pegasus": "PegasusTokenizer",
    "qwen3_5_text": "Qwen3_5Tokenizer",
    "siglip": "SiglipTokenizer",
    "siglip2": "Siglip2Tokenizer",
    "whisper": "WhisperTokenizer",
    "xlnet": "XLNetTokenizer",
}
# Models whose files on the Hub name another class than the right one, which is that of CLASS_OF_MODEL.
MISNAMED_MODELS = ("ernie4_5", "llava", "modernbert", "modernbert-decoder", "nemotron", "paddleocr_vl")
MISNAMED_MODELS += ("phi3", "qwen2", "siglip2", "smolvlm")
GENERIC_CLASSES = (BACKEND, "PreTrainedTokenizer", "PreTrainedTokenizerFast", "PythonBackend")


def class_name(config: Mapping[str, Any], model: Mapping[str, Any], raw: Mapping[str, Any] | None) -> str | None:
    """The class that transformers' AutoTokenizer takes, BACKEND where that is the file's own; None: nothing names one.

    config: tokenizer_config.json.  model: config.json.  raw: tokenizer.json, if there is one.
    """
    kind = model.get("model_type")
    own = CLASS_OF_MODEL.get(kind) if isinstance(kind, str) else None
    named = config.get("tokenizer_class") or model.get("tokenizer_class")
    if named is not None and not isinstance(named, str):
        raise TokenizerError(f"tokenizer_config.json: tokenizer_class is {named!r}, expected a name")
    if named is None:
        return own if own is not None or kind is None else BACKEND
    name = named.removesuffix("Fast") if named != "PreTrainedTokenizerFast" else BACKEND
    if name == "LlamaTokenizer" and kind not in ("mistral", "mixtral", *MISNAMED_MODELS) and _has_byte_level(raw):
        return BACKEND  # Llama 3 and its kin
    if own is None or own == name:
        return BACKEND if name in GENERIC_CLASSES else name
    if own == BACKEND:
        return BACKEND
    name = own if kind in MISNAMED_MODELS else name
    return BACKEND if name in GENERIC_CLASSES else name


def _has_byte_level(raw: Mapping[str, Any] | None) -> bool:
    parts = [(raw or {}).get(kind) for kind in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
    return "'ByteLevel'" in repr(parts)
