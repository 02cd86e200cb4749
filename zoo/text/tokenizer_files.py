"""Builds a backend of the `tokenizers` library from the tokenizer files of a checkpoint.

`tokenizer.json` is read part by part; without one the backend is built from vocab.txt (WordPiece), vocab.json +
merges.txt (byte-level BPE), sentencepiece.bpe.model or spm.model (Unigram).  The files and `tokenizer_class` decide
which, never the model: multilingual-e5-small is a BERT with XLM-R's tokenizer.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import TokenizerError, nearest
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import check_charsmap, check_pieces, check_vocabulary
from .sentencepiece_model import MAX_BYTES, UNKNOWN, USER_DEFINED, read_sentencepiece
from .special_tokens import LIMIT, add_tokens, special_tokens, tokenizer_json
from .template_files import template_files
from .tokenizer_json import MAX_MERGES, MAX_NODES, guarded, tokenizer_of

if TYPE_CHECKING:
    import tokenizers

log = logging.getLogger(__name__)

Side = Literal["left", "right"]
UNLIMITED = 10**9  # tokens; transformers writes 1e30 where a tokenizer has no limit of its own

FILES = (  # those with a vocabulary first: messages name the first that there is
    *("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spm.model", "merges.txt"),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)


class Family(NamedTuple):
    """Defaults of transformers' tokenizer classes, for files that do not state them."""

    classes: tuple[str, ...]
    roles: dict[str, str]
    typed: bool  # True if the second text gets segment 1


_ANGLE = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
BERT = Family(
    # The others are BERT's under other names, in checkpoints that older versions saved.
    ("BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "ConvBertTokenizer", "MobileBertTokenizer"),
    {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"},
    typed=True,
)
ROBERTA = Family(("RobertaTokenizer", "BartTokenizer", "LongformerTokenizer"), _ANGLE, typed=False)
XLM_ROBERTA = Family(("XLMRobertaTokenizer",), _ANGLE, typed=False)

DEBERTA = Family(("DebertaV2Tokenizer",), {**BERT.roles, "bos": "[CLS]", "eos": "[SEP]"}, typed=True)
_TYPED = (BERT, DEBERTA)


class Loaded(NamedTuple):
    backend: tokenizers.Tokenizer  # truncation and padding off
    roles: dict[str, str]  # "pad" -> "[PAD]"; a role that the tokenizer lacks is absent
    folder: CheckpointFolder
    files: list[str]  # those of FILES that the folder has, and of chat templates
    chat_template: Any  # the value in tokenizer_config.json
    model_max_length: int | None
    padding_side: Side
    truncation_side: Side
    tidies: bool  # True if decoding removes the spaces before punctuation
    typed: bool  # True if the second text gets segment 1


def load_files(folder: CheckpointFolder) -> Loaded:
    """Read or build the tokenizer of a checkpoint folder; TokenizerError where that cannot be done."""
    with guarded(folder):
        return _loaded(folder)


def _loaded(folder: CheckpointFolder) -> Loaded:
    have = [name for name in FILES if folder.has(name)]
    config = tokenizer_json(folder, "tokenizer_config.json") if "tokenizer_config.json" in have else {}
    declared, added = special_tokens(folder, have, config)
    roles = {role: token if isinstance(token, str) else token.content for role, token in declared.items()}
    if "tokenizer.json" in have:
        raw = folder.json("tokenizer.json", LIMIT, TokenizerError, MAX_NODES, exact=False)
        backend, padding, truncation = tokenizer_of(raw, folder.where("tokenizer.json"))
        family = _family(config, backend)
        if family is BERT:
            _override_bert_normalizer(backend, config)
        if _of_siglip2(folder, config):
            _lowercase(backend)
        # They are properties of a call, not of the tokenizer: all-MiniLM-L6-v2's file would pad everything to 128.
        if padding:
            if backend.token_to_id(padding["pad_token"]) is not None:
                roles.setdefault("pad", padding["pad_token"])
            config.setdefault("padding_side", padding["direction"])
        if truncation:
            config.setdefault("truncation_side", truncation["direction"])
    else:
        family = _family_of_files(folder, have, config)
        roles = {**family.roles, **roles}
        backend = _BUILDERS[family.classes](folder, config, roles)
    if family:
        known = {role: token for role, token in family.roles.items() if backend.token_to_id(token) is not None}
        roles = {**known, **roles}
    built = "tokenizer.json" not in have
    add_tokens(folder, backend, roles, declared, added, config, bert=family in _TYPED, built=built)
    if family and backend.post_processor is None:
        _template(folder, backend, family, roles, config)
    if config.get("split_special_tokens"):
        backend.encode_special_tokens = True
    names = config.get("model_input_names")
    typed = "token_type_ids" in names if isinstance(names, list) else family is None or family.typed
    # transformers' rule: tidying is meant for WordPiece and would damage byte-level BPE.
    tidies = bool(config.get("clean_up_tokenization_spaces")) and type(backend.model).__name__ != "BPE"
    sides = _side(config, "padding_side"), _side(config, "truncation_side")
    template = config.get("chat_template")
    found = template_files(folder, template)
    have += [] if found is None else found.files
    return Loaded(backend, roles, folder, have, template, _max_length(config), *sides, tidies, typed)


def _max_length(config: dict[str, Any]) -> int | None:
    value = config.get("model_max_length", config.get("max_len"))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise TokenizerError(f"tokenizer_config.json: model_max_length is {value!r}, expected a number of tokens")
    return None if value > UNLIMITED else int(value)


def _side(config: dict[str, Any], key: str) -> Side:
    value = str(config.get(key, "right")).lower()
    if value == "left":
        return "left"
    if value == "right":
        return "right"
    raise TokenizerError(f"tokenizer_config.json: {key} is {value!r}, expected 'left' or 'right'")


def _lines(folder: CheckpointFolder, name: str) -> list[str]:
    path, data = folder.where(name), folder.read(name, LIMIT, TokenizerError)
    if not data:
        raise TokenizerError(f"{path}: empty")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path}: not UTF-8 at byte {error.start}") from None
    if max(text.count("\n"), text.count("\r")) > MAX_MERGES:
        raise TokenizerError(f"{path}: more than {MAX_MERGES} lines")
    # Not splitlines: U+2028 and its kind are tokens of the multilingual vocabularies, only \n, \r\n and \r end a line.
    return [line.rstrip("\n") for line in io.StringIO(text, newline=None)]


def _class_name(config: dict[str, Any]) -> str | None:
    name = config.get("tokenizer_class")
    if name is not None and not isinstance(name, str):
        raise TokenizerError(f"tokenizer_config.json: tokenizer_class is {name!r}, expected a name")
    return name.removesuffix("Fast") if name else None


def _family(config: dict[str, Any], backend: tokenizers.Tokenizer) -> Family | None:
    """The family of a tokenizer.json; None for one whose special tokens only its own files know."""
    name = _class_name(config)
    if name:
        return next((family for family in (BERT, ROBERTA, XLM_ROBERTA) if name in family.classes), None)
    kind = type(backend.model).__name__
    family = {"WordPiece": BERT, "BPE": ROBERTA, "Unigram": XLM_ROBERTA}.get(kind)
    complete = family and all(backend.token_to_id(token) is not None for token in family.roles.values())
    return family if complete else None


def _family_of_files(folder: CheckpointFolder, have: list[str], config: dict[str, Any]) -> Family:
    choices = {"vocab.txt": BERT, "sentencepiece.bpe.model": XLM_ROBERTA, "vocab.json": ROBERTA, "spm.model": DEBERTA}
    found = {file: family for file, family in choices.items() if file in have}
    name = _class_name(config)
    if name and found and name not in {"PreTrainedTokenizer", "TokenizersBackend"}:
        matching = {file: family for file, family in found.items() if name in family.classes}
        if not matching:
            known = [c for family in found.values() for c in family.classes]
            raise TokenizerError(
                f"{folder}: tokenizer_class {name} cannot be built from {', '.join(found)}: expected a tokenizer.json, "
                f"or one of {', '.join(known)}"  # no guess: the nearest name may have other ids
            )
        found = matching
    if "vocab.json" in found and "merges.txt" not in have:
        raise TokenizerError(f"{folder}: vocab.json without merges.txt, expected both (or a tokenizer.json)")
    if not found:
        there = folder.names()[:20]
        raise TokenizerError(
            f"{folder}: no tokenizer: expected tokenizer.json, vocab.txt, vocab.json + merges.txt, "
            f"sentencepiece.bpe.model or spm.model, found {', '.join(there) or 'nothing'}"
        )
    return next(iter(found.values()))


def _override_bert_normalizer(backend: tokenizers.Tokenizer, config: dict[str, Any]) -> None:
    """Let tokenizer_config.json override tokenizer.json, as in transformers."""
    from tokenizers.normalizers import BertNormalizer

    old = backend.normalizer
    if isinstance(old, BertNormalizer):
        backend.normalizer = BertNormalizer(
            clean_text=old.clean_text,
            handle_chinese_chars=_flag(config, "tokenize_chinese_chars", old.handle_chinese_chars),
            strip_accents=_flag(config, "strip_accents", old.strip_accents, optional=True),
            lowercase=_flag(config, "do_lower_case", old.lowercase),
        )


def _of_siglip2(folder: CheckpointFolder, config: dict[str, Any]) -> bool:
    """True for the texts of SigLIP 2 NaFlex: the Hub's files name Gemma's tokenizer, and transformers takes another."""
    kind = str(config.get("tokenizer_class")).removesuffix("Fast")
    if kind != "GemmaTokenizer":
        return kind == "Siglip2Tokenizer"
    return folder.has("config.json") and folder.json("config.json").get("model_type") == "siglip2"


def _lowercase(backend: tokenizers.Tokenizer) -> None:
    from tokenizers import normalizers

    steps = [normalizers.Lowercase(), *([] if backend.normalizer is None else [backend.normalizer])]
    backend.normalizer = normalizers.Sequence(steps)


def _flag(config: dict[str, Any], key: str, default: Any, optional: bool = False) -> Any:
    value = config.get(key, default)
    if isinstance(value, bool) or (optional and value is None):
        return value
    raise TokenizerError(f"tokenizer_config.json: {key} is {value!r}, expected true or false")


def _require(path: str, vocab: dict[str, int], tokens: list[str]) -> None:
    for token in tokens:
        if token not in vocab:
            guess = nearest(token, (other for other in vocab if other[:1] == token[:1]))
            raise TokenizerError(f"{path}: no {token!r} among its {len(vocab)} tokens{guess}")


def _wordpiece(folder: CheckpointFolder, config: dict[str, Any], roles: dict[str, str]) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocab = {token: i for i, token in enumerate(_lines(folder, "vocab.txt"))}
    _require(folder.where("vocab.txt"), vocab, [roles[role] for role in ("unk", "cls", "sep")])
    if config.get("never_split"):
        log.warning("%s: never_split is ignored, as by transformers' own fast tokenizers", folder)
    backend = Tokenizer(models.WordPiece(vocab, unk_token=roles["unk"], max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=_flag(config, "tokenize_chinese_chars", True),
        strip_accents=_flag(config, "strip_accents", None, optional=True),
        lowercase=_flag(config, "do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    return backend


def _byte_level_bpe(folder: CheckpointFolder, config: dict[str, Any], roles: dict[str, str]) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    path, vocab = folder.where("vocab.json"), tokenizer_json(folder, "vocab.json")
    check_vocabulary(vocab, path)
    if len(set(vocab.values())) != len(vocab):
        raise TokenizerError(f"{path}: {len(vocab) - len(set(vocab.values()))} tokens share an id with another")
    _require(path, vocab, [roles["cls"], roles["sep"]])
    merges = _merges(folder, vocab)
    options: Any = {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
    with guarded(folder.where("merges.txt")):
        backend = Tokenizer(models.BPE(vocab, merges, **options))
    prefix_space = _flag(config, "add_prefix_space", False)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    backend.decoder = decoders.ByteLevel()
    return backend


def _merges(folder: CheckpointFolder, vocab: dict[str, int]) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    path = folder.where("merges.txt")
    for number, line in enumerate(_lines(folder, "merges.txt"), 1):
        if not line or line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise TokenizerError(f"{path}, line {number}: {line[:80]!r}, expected two tokens and a space between")
        left, right = parts
        for token in (left, right, left + right):
            if token not in vocab:
                raise TokenizerError(f"{path}, line {number}: the token {token[:80]!r} is not in vocab.json")
        merges.append((left, right))
    return merges


def _xlm_roberta(folder: CheckpointFolder, config: dict[str, Any], roles: dict[str, str]) -> tokenizers.Tokenizer:
    """Fairseq's order of ids: four specials of its own, the model's pieces after its first three, then the mask."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    name = "sentencepiece.bpe.model"
    path, data = folder.where(name), folder.read(name, MAX_BYTES, TokenizerError)
    pieces, charsmap = read_sentencepiece(data, path)
    first = [piece.text for piece in pieces[:3]]
    if first != ["<unk>", "<s>", "</s>"]:
        raise TokenizerError(f"{path}: starts with the pieces {first}, expected <unk>, <s>, </s> (XLM-R's order)")
    specials = [(roles[role], 0.0) for role in ("bos", "pad", "eos", "unk")]
    vocab = [*specials, *((piece.text, piece.score) for piece in pieces[3:]), (roles["mask"], 0.0)]
    check_pieces(vocab, path)
    with guarded(path):
        backend = Tokenizer(models.Unigram(vocab, unk_id=3, byte_fallback=False))
        if charsmap:
            check_charsmap(charsmap, path)
            backend.normalizer = normalizers.Precompiled(charsmap)
    scheme = "always" if _flag(config, "add_prefix_space", True) else "never"
    words = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)]
    backend.pre_tokenizer = pre_tokenizers.Sequence(words)
    backend.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    symbols = [AddedToken(p.text, normalized=False) for p in pieces[3:] if p.kind == USER_DEFINED]
    backend.add_tokens(symbols)
    return backend


def _deberta(folder: CheckpointFolder, config: dict[str, Any], roles: dict[str, str]) -> tokenizers.Tokenizer:
    """The model's own order of ids, special tokens among them; the mask is added after the last."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    name = "spm.model"
    path, data = folder.where(name), folder.read(name, MAX_BYTES, TokenizerError)
    pieces, charsmap = read_sentencepiece(data, path)
    vocab = [(piece.text, piece.score) for piece in pieces]
    check_pieces(vocab, path)
    _require(path, {piece.text: i for i, piece in enumerate(pieces)}, [roles["cls"], roles["sep"]])
    unknown = [i for i, piece in enumerate(pieces) if piece.kind == UNKNOWN]
    if not unknown:
        raise TokenizerError(f"{path}: none of its {len(pieces)} pieces is the unknown token")
    steps: list[Any] = [normalizers.Lowercase()] if _flag(config, "do_lower_case", False) else []
    steps.append(normalizers.Strip())
    with guarded(path):
        backend = Tokenizer(models.Unigram(vocab, unk_id=unknown[0], byte_fallback=False))
        if charsmap:
            check_charsmap(charsmap, path)
            steps.append(normalizers.Precompiled(charsmap))
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    words: list[Any] = [pre_tokenizers.Punctuation("isolated")] if _flag(config, "split_by_punct", False) else []
    scheme = "always" if _flag(config, "add_prefix_space", True) else "first"
    words.append(pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme))
    backend.pre_tokenizer = pre_tokenizers.Sequence(words)
    backend.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    backend.add_tokens([AddedToken(p.text, normalized=False) for p in pieces if p.kind == USER_DEFINED])
    return backend


_BUILDERS: dict[tuple[str, ...], Callable[[CheckpointFolder, dict[str, Any], dict[str, str]], tokenizers.Tokenizer]] = {
    BERT.classes: _wordpiece,
    ROBERTA.classes: _byte_level_bpe,
    XLM_ROBERTA.classes: _xlm_roberta,
    DEBERTA.classes: _deberta,
}


def _template(
    folder: CheckpointFolder,
    backend: tokenizers.Tokenizer,
    family: Family,
    roles: dict[str, str],
    config: dict[str, Any],
) -> None:
    from tokenizers import processors

    cls, sep = roles["cls"], roles["sep"]
    ids = {token: backend.token_to_id(token) for token in (cls, sep)}
    known = [(token, index) for token, index in ids.items() if index is not None]
    if len(known) != len(ids):
        raise TokenizerError(f"{folder}: {cls!r} or {sep!r} is not in the vocabulary")
    if family is ROBERTA:
        backend.post_processor = processors.RobertaProcessing(
            known[-1],
            known[0],
            trim_offsets=_flag(config, "trim_offsets", True),
            add_prefix_space=_flag(config, "add_prefix_space", False),
        )
        return
    single, pair = [cls, "$A", sep], [cls, "$A", sep, sep, "$B", sep]
    if family in _TYPED:
        pair = [f"{cls}:0", "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"]
    with guarded(f"{folder}: special tokens {cls!r} and {sep!r}"):
        backend.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=known)
