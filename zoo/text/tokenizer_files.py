"""Builds a backend of the `tokenizers` library from the tokenizer files of a checkpoint.

The vocabulary comes from tokenizer.json, or from the file of the checkpoint's class (see `tokenizer_classes`); the rest
from the class and tokenizer_config.json, or from tokenizer.json where the class is none of those.  A named class comes
before that of the model: multilingual-e5-small is a BERT with XLM-R's tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder
from .marian import IDS, MAX_TOKENS, SOURCE, TARGET, Marian, PieceIds, marian
from .post_processors import Tokens, of_file
from .special_tokens import ROLES, DeclaredTokens, add_tokens, declared_tokens, text_of, texts_of, tokenizer_json
from .template_files import template_files
from .tokenizer_classes import BACKEND, CLASSES, TokenizerClass, VocabularyFile, class_name
from .tokenizer_json import MAX_NODES, kind_of, tokenizer_of, translate_rust_errors
from .tokenizer_parts import Settings, mistral_words, of_sentencepiece
from .vocabulary_files import LIMIT, Vocabulary, sentencepiece

if TYPE_CHECKING:
    import tokenizers

Side = Literal["left", "right"]
NO_LIMIT = 10**9  # tokens; transformers writes 1e30 where a tokenizer has no limit of its own

FILE = "tokenizer.json"
VOCABULARY_FILES = (
    *(FILE, "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spm.model", "spiece.model", "tokenizer.model"),
    *(SOURCE, TARGET),
)
FILES = (  # messages name the first that there is
    *(*VOCABULARY_FILES, "merges.txt"),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)
# The class of a folder that names none, by its file, and of a tokenizer.json by its model if it has all of its tokens.
CLASS_OF_FILE = {
    "vocab.txt": "BertTokenizer",
    "sentencepiece.bpe.model": "XLMRobertaTokenizer",
    "vocab.json": "RobertaTokenizer",
    "spm.model": "DebertaV2Tokenizer",
}
CLASS_OF_KIND = {"WordPiece": "BertTokenizer", "BPE": "RobertaTokenizer", "Unigram": "XLMRobertaTokenizer"}
MISTRAL = ("mistral", "mistral3", "voxtral", "ministral", "pixtral", None)  # model types whose words may be mended
MISTRAL_SIZE = 100_000  # tokens from which they are


class Loaded(NamedTuple):
    backend: tokenizers.Tokenizer  # truncation and padding off
    roles: dict[str, str]  # "pad" -> "[PAD]"; a role that the tokenizer lacks is absent
    named: dict[str, str]  # a model's own special tokens, "image_token" -> its text
    folder: CheckpointFolder
    files: list[str]  # those of FILES that the folder has, and of chat templates
    chat_template: Any  # the value in tokenizer_config.json
    model_max_length: int | None
    padding_side: Side
    truncation_side: Side
    tidies: bool  # True if decoding removes the spaces before punctuation
    typed: bool  # True if the second text gets segment 1
    prepare: Callable[[str], str] | None  # what is done to a text before all else
    word_end: str  # what stands in decoded texts for the space after a word; "" if nothing does
    leaves_out_bytes: bool = False  # True if decoding leaves out the bytes that are no UTF-8
    ids: PieceIds | None = None  # where the library's are not the checkpoint's
    languages: Sequence[str] = ()  # the tokens that say a text's language
    target: Loaded | None = None  # for texts that the model writes, if others than it reads


def load_files(folder: CheckpointFolder) -> Loaded:
    """Read or build the tokenizer of a checkpoint folder; TokenizerError where that cannot be done."""
    with translate_rust_errors(folder):
        return _load(folder)


def _load(folder: CheckpointFolder) -> Loaded:
    have = [name for name in FILES if folder.has(name)]
    config = tokenizer_json(folder, "tokenizer_config.json") if "tokenizer_config.json" in have else {}
    model = folder.json("config.json") if folder.has("config.json") else {}
    _refuse_versions(folder, config)
    raw = folder.json(FILE, LIMIT, TokenizerError, MAX_NODES, exact=False) if FILE in have else None
    name = class_name(config, model, raw)
    if name == "MarianTokenizer" and SOURCE in have:
        return _of_marian(folder, have, config, declared_tokens(folder, have, config, None))
    if name == "SiglipTokenizer" and CLASSES[name].file in have:
        raw = None  # which transformers' class does not read, either
    from_pieces = raw is None and name != "SiglipTokenizer" and any(file.endswith(".model") for file in have)
    declared = declared_tokens(folder, have, config, raw, from_pieces)
    if raw is None:
        cls, vocabulary = _of_files(folder, have, name, declared, config)
    else:
        cls, vocabulary = CLASSES.get(name or "") or (_guess(raw) if name is None else None), _of_raw(folder, raw)
    roles = _roles(cls, declared, vocabulary, raw is not None)
    settings = Settings(config, texts_of(roles), vocabulary)
    fits = raw is None or (cls is not None and name is not None and _fits(cls, settings, vocabulary))
    parts = _class_parts(cls, settings) if fits else {}
    # The classes of transformers 5.23 forget it, as version 4 did not, and ids differ from those of the training.
    from_class = fits and not (_splits(raw) and not _splits(parts))
    backend, padding, truncation = tokenizer_of(
        {**(raw or {"version": "1.0"}), **(parts if from_class else {})}, vocabulary.path
    )
    # They are properties of a call, not of the tokenizer: all-MiniLM-L6-v2's file would pad everything to 128.
    if padding and "pad" not in declared.roles and cls is not CLASSES["GPT2Tokenizer"]:  # which then has none
        roles.setdefault("pad", padding["pad_token"])
    extra: Sequence[str | tokenizers.AddedToken] = declared.extra or ()
    if declared.extra is None and from_class:
        symbols = vocabulary.symbols if cls is None or cls.extra is None else cls.extra(settings)
        extra = [_symbol(*symbol) for symbol in symbols]
    special = {**{f"{role}_token": token for role, token in roles.items()}, **declared.named}
    add_tokens(folder, backend, special, extra, declared.added, check_ids=raw is None)
    if cls is not None and cls.is_plain:
        backend.add_tokens([_symbol(text_of(token), True) for token in (*special.values(), *extra)])
    texts = texts_of(roles)
    if from_class or backend.post_processor is None:
        maker = of_file if cls is None else cls.post_processor
        after = maker(Tokens(backend, texts, config, raw is not None, folder))
        backend.post_processor = backend.post_processor if after is None else after
    if config.get("fix_mistral_regex") is True:
        _mend_words(backend, model)
    if config.get("split_special_tokens"):
        backend.encode_special_tokens = True
    names = config.get("model_input_names")
    found = template_files(folder, config.get("chat_template"))
    return Loaded(
        backend=backend,
        roles=texts,
        named={name: text_of(token) for name, token in declared.named.items()},
        folder=folder,
        files=have if found is None else [*have, *found.files],
        chat_template=config.get("chat_template"),
        model_max_length=_max_length(config, None if cls is None else cls.model_max_length),
        padding_side=_side(config, "padding_side", padding.get("direction") or (cls.padding_side if cls else "right")),
        truncation_side=_side(config, "truncation_side", truncation.get("direction", "right")),
        tidies=_tidies(config, type(backend.model).__name__),
        typed="token_type_ids" in names if isinstance(names, list) else raw is not None if cls is None else cls.typed,
        prepare=cls.prepare(settings, backend) if cls is not None and cls.prepare is not None and from_class else None,
        word_end="</w>" if cls is CLASSES["CLIPTokenizer"] else "",
        leaves_out_bytes=cls is not None and cls.leaves_out_bytes,
        languages=cls.languages if cls is not None and from_class else (),
    )


def _of_marian(
    folder: CheckpointFolder, have: list[str], config: Mapping[str, Any], declared: DeclaredTokens
) -> Loaded:
    """The tokenizers of source.spm and target.spm."""
    names = (SOURCE, TARGET, IDS, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    template = template_files(folder, config.get("chat_template"))
    files = [*(name for name in names if name in have), *([] if template is None else template.files)]

    def as_marian(one: Marian, target: Loaded | None) -> Loaded:
        return Loaded(
            backend=one.backend,
            roles=one.roles,
            named={name: text_of(token) for name, token in declared.named.items()},
            folder=folder,
            files=files,
            chat_template=config.get("chat_template"),
            model_max_length=_max_length(config, MAX_TOKENS),
            padding_side=_side(config, "padding_side", "right"),
            truncation_side=_side(config, "truncation_side", "right"),
            tidies=bool(config.get("clean_up_tokenization_spaces")),
            typed=False,
            prepare=one.prepare,
            word_end="",
            ids=one.ids,
            target=target,
        )

    source, target = marian(folder, config, declared)
    return as_marian(source, as_marian(target, None))


def _symbol(text: str, special: bool) -> tokenizers.AddedToken:
    from tokenizers import AddedToken

    return AddedToken(text, special=special, normalized=False)


def _of_raw(folder: CheckpointFolder, raw: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary of a tokenizer.json, with the rules of its normalizer."""
    normalizer, model = raw.get("normalizer"), raw.get("model")
    steps = normalizer.get("normalizers", [normalizer]) if isinstance(normalizer, dict) else []
    rules = [step.get("precompiled_charsmap") for step in steps if isinstance(step, dict)]
    charsmap = next((rule for rule in rules if isinstance(rule, str)), None)
    return Vocabulary(folder.where(FILE), model if isinstance(model, dict) else {}, charsmap)


def _guess(raw: Mapping[str, Any]) -> TokenizerClass | None:
    """The class of a tokenizer.json that nothing names: the one of its model, if it has all of its tokens."""
    model = raw.get("model")
    if not isinstance(model, dict) or not isinstance(vocab := model.get("vocab"), dict | list):
        return None
    guess = CLASSES[CLASS_OF_KIND.get(kind_of(model), "BertTokenizer")]
    tokens = set(vocab) if isinstance(vocab, dict) else {str(piece[0]) for piece in vocab if isinstance(piece, list)}
    return guess if tokens.issuperset(guess.roles.values()) else None


def _fits(cls: TokenizerClass, settings: Settings, vocabulary: Vocabulary) -> bool:
    """True if a tokenizer.json has a model of the class's kind; else it is another tokenizer's, and stays as it is."""
    return bool(vocabulary.model.get("vocab")) and kind_of(vocabulary.model) == cls.kind


def _splits(raw: Mapping[str, Any] | None) -> bool:
    """True if a tokenizer.json splits digits, or words by a pattern of its own."""
    pre_tokenizer = (raw or {}).get("pre_tokenizer")
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer]) if isinstance(pre_tokenizer, dict) else []
    return any(isinstance(step, dict) and step.get("type") in ("Digits", "Split") for step in steps)


def _class_parts(cls: TokenizerClass | None, settings: Settings) -> dict[str, Any]:
    """The parts that a class makes, with the vocabulary, as a tokenizer.json has them."""
    parts = of_sentencepiece(settings) if cls is None else cls.make(settings)
    vocabulary = {
        key: settings.vocabulary.model[key] for key in ("vocab", "merges") if key in settings.vocabulary.model
    }
    return {**parts, "model": {**parts["model"], **vocabulary}, "added_tokens": []}


def _roles(
    cls: TokenizerClass | None, declared: DeclaredTokens, vocabulary: Vocabulary | None, is_file: bool
) -> dict[str, str | tokenizers.AddedToken]:
    """The token of each role: the stated one, or else the class's, in the order in which new ones get their ids."""
    from tokenizers import AddedToken

    defaults: dict[str, str] = {} if cls is None else dict(cls.roles)
    if cls is None and vocabulary is not None and (source := vocabulary.source) is not None:
        defaults = {role: source.names[role] for role, index in source.ids.items() if index >= 0}
    flags = {} if cls is None else {**cls.flags, **({} if is_file else cls.flags_of_files)}
    found: dict[str, str | tokenizers.AddedToken] = {}
    for role in ROLES:
        token = declared.roles.get(role, defaults.get(role))
        if isinstance(token, str) and role in flags:
            token = AddedToken(token, special=True, normalized=False, **flags[role])
        if token is not None:
            found[role] = token
    return found


def _of_files(
    folder: CheckpointFolder, have: list[str], name: str | None, declared: DeclaredTokens, config: Mapping[str, Any]
) -> tuple[TokenizerClass | None, Vocabulary]:
    """The class of a folder without a tokenizer.json, and its vocabulary."""
    if name == BACKEND and "tokenizer.model" in have:
        return None, sentencepiece(folder, "tokenizer.model")
    file = next((file for file in have if file in CLASS_OF_FILE), None)
    if name in CLASSES:
        cls = CLASSES[name]
        names = [cls.file, *(["tokenizer.model"] if cls.file.endswith(".model") else [])]
        file = next((file for file in names if file in have), None)
    elif name not in (None, BACKEND) or file is None:
        cls = None
    else:
        cls = CLASSES[CLASS_OF_FILE[file]]
    if cls is None or file is None:
        raise TokenizerError(_missing_files(folder, have, name, cls))
    return cls, cls.read(VocabularyFile(folder, file, texts_of(_roles(cls, declared, None, False)), config))


def _missing_files(folder: CheckpointFolder, have: list[str], name: str | None, cls: TokenizerClass | None) -> str:
    there = [file for file in have if not file.endswith("json") or file == "vocab.json"]
    if cls is not None:
        wanted = f"expected tokenizer.json, or the {cls.file} of a {name}"
        return f"{folder}: no tokenizer: {wanted}, found {', '.join(have) or 'nothing'}"
    if name not in (None, BACKEND) and there:
        known = sorted(other for other, row in CLASSES.items() if row.file in there)  # no guess: they have other ids
        problem = f"tokenizer_class {name} cannot be built from {', '.join(there)}: expected a tokenizer.json"
        return f"{folder}: {problem}" + (f", or one of {', '.join(known)}" if known else "")
    wanted = "expected tokenizer.json, vocab.txt, vocab.json + merges.txt, sentencepiece.bpe.model or spm.model"
    if there:
        return f"{folder}: {', '.join(there)} without a tokenizer_class, which says how it is read: {wanted}"
    return f"{folder}: no tokenizer: {wanted}, found {', '.join(folder.names()[:20]) or 'nothing'}"


def _mend_words(backend: tokenizers.Tokenizer, model: Mapping[str, Any]) -> None:
    """Split words as fix_mistral_regex asks for, in the files that transformers mends."""
    from tokenizers import pre_tokenizers

    version = str(model.get("transformers_version") or "4")
    is_old = version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) < 5
    if model and is_old and model.get("model_type") in MISTRAL and backend.get_vocab_size() > MISTRAL_SIZE:
        old = json.loads(backend.to_str())["pre_tokenizer"]  # a file without any stays as it is
        if old is not None:
            made = json.dumps(mistral_words(old)).encode()
            new = pre_tokenizers.Sequence([])
            new.__setstate__(made)
            backend.pre_tokenizer = new


def _refuse_versions(folder: CheckpointFolder, config: Mapping[str, Any]) -> None:
    """TokenizerError where tokenizer_config.json names further tokenizer.json for versions of transformers."""
    files = config.get("fast_tokenizer_files")
    others = [name for name in files if name != FILE and folder.has(str(name))] if isinstance(files, list) else []
    if others:
        where = folder.where("tokenizer_config.json")
        raise TokenizerError(f"{where}: fast_tokenizer_files names {', '.join(map(str, others))}, and zoo reads {FILE}")


def _tidies(config: Mapping[str, Any], kind: str) -> bool:
    """transformers' rule: tidying is meant for WordPiece and would damage byte-level BPE, unless that is asked for."""
    even_so = config.get("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output")
    return bool(config.get("clean_up_tokenization_spaces")) and (kind != "BPE" or bool(even_so))


def _max_length(config: Mapping[str, Any], default: int | None) -> int | None:
    value = config.get("model_max_length", config.get("max_len", default))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise TokenizerError(f"tokenizer_config.json: model_max_length is {value!r}, expected a number of tokens")
    return None if value > NO_LIMIT else int(value)


def _side(config: Mapping[str, Any], key: str, default: str) -> Side:
    value = str(config.get(key, default)).lower()
    if value == "left":
        return "left"
    if value == "right":
        return "right"
    raise TokenizerError(f"tokenizer_config.json: {key} is {value!r}, expected 'left' or 'right'")
