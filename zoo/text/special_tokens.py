"""The special and the added tokens that the files beside a vocabulary declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import MAX_ID, check_added, quote
from .tokenizer_json import MAX_NODES
from .vocabulary_files import LIMIT

if TYPE_CHECKING:
    from typing import TypeGuard

    import tokenizers

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")  # in the order in which new ones get their ids
_FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")
# LUKE's tokens of the vocabulary of entities.  transformers 5 puts them among those of words, for which its models have
# no rows; version 4 did not.
ENTITY_ROLES = ("entity_unk_token", "entity_pad_token", "entity_mask_token", "entity_mask2_token")
EXTRA = ("extra_special_tokens", "additional_special_tokens")  # the second is the first's older name


class Roles(dict[str, str]):
    """The text of each role's token; TokenizerError where one is needed that the files set to null."""

    def __missing__(self, role: str) -> str:
        raise TokenizerError(f"tokenizer_config.json: {role}_token is null, and a tokenizer of this class needs it")


class DeclaredTokens(NamedTuple):
    """What the files declare; a token is a text where its flags are not stated."""

    roles: dict[str, str | tokenizers.AddedToken | None]  # None: the files say that there is none
    named: dict[str, str | tokenizers.AddedToken]  # a model's own, as "image_token"
    extra: list[str | tokenizers.AddedToken] | None  # None: not stated
    added: dict[int, tokenizers.AddedToken]


def tokenizer_json(folder: CheckpointFolder, name: str) -> dict[str, Any]:
    """The object in one of a tokenizer's files."""
    return folder.json(name, LIMIT, TokenizerError, MAX_NODES)


def declared_tokens(
    folder: CheckpointFolder,
    have: Collection[str],
    config: Mapping[str, Any],
    raw: Mapping[str, Any] | None,
    from_pieces: bool = False,
) -> DeclaredTokens:
    """The tokens of a checkpoint's files.

    As in transformers: `added_tokens_decoder` makes special_tokens_map.json, added_tokens.json and the tokens of
    tokenizer.json (`raw`) void; without it each of these outranks those before it, and all tokenizer_config.json, but
    for `additional_special_tokens`.  from_pieces: True where a SentencePiece model states these.
    """
    where, source = folder.where("tokenizer_config.json"), dict(config)
    if EXTRA[1] in source and not source.get(EXTRA[0]):
        source[EXTRA[0]] = source.pop(EXTRA[1])
        if source[EXTRA[0]] is None and from_pieces:  # mT5's file says so
            source[EXTRA[0]] = []
    decoder = config.get("added_tokens_decoder")
    added: dict[int, tokenizers.AddedToken] = {}
    if decoder is not None:
        if not isinstance(decoder, dict):
            raise TokenizerError(f"{where}: added_tokens_decoder is not an object")
        for key, value in decoder.items():
            if not (key.isascii() and key.isdecimal() and len(key) <= 9):
                raise TokenizerError(f"{where}: added_tokens_decoder has {quote(key)}, expected an id")
            added[int(key)] = _token(value, f"{where}: added_tokens_decoder[{key}]")
        stated = dict.fromkeys(source, where)
    else:
        stated = dict.fromkeys(source, where)
        if "special_tokens_map.json" in have:
            own = tokenizer_json(folder, "special_tokens_map.json")
            if from_pieces or EXTRA[0] in source:
                own.pop(EXTRA[1], None)
            # A list of tokens adds to that of tokenizer_config.json under the same name.
            if isinstance(lists := own.get(EXTRA[0]), list) and isinstance(source.get(EXTRA[0]), list):
                own = {**own, EXTRA[0]: [*source[EXTRA[0]], *lists]}
            source.update({name: _as_special(value) for name, value in own.items()})
            stated.update({name: folder.where("special_tokens_map.json") for name in own})
    roles, named = _roles(source, stated)
    extra = _extra(source, stated, named)
    if decoder is None:
        special = {text_of(token) for token in (*roles.values(), *named.values(), *(extra or ())) if token is not None}
        added = _legacy(folder, have, special, raw)
    flags = {token.content: token for token in added.values()}
    roles = {role: flags.get(text_of(t), t) if t is not None else None for role, t in roles.items()}
    return DeclaredTokens(roles, named, extra, added)


def _roles(
    source: Mapping[str, Any], stated: Mapping[str, str]
) -> tuple[dict[str, str | tokenizers.AddedToken | None], dict[str, str | tokenizers.AddedToken]]:
    """The tokens of the keys that end in _token: of the roles, and a model's own."""
    roles: dict[str, str | tokenizers.AddedToken | None] = {}
    named: dict[str, str | tokenizers.AddedToken] = {}
    for key, value in source.items():
        role = key.removesuffix("_token")
        if role in ROLES and key != role:
            roles[role] = None if value is None else _text_or_token(value, f"{stated[key]}: {key}")
        elif key.endswith("_token") and key not in ENTITY_ROLES and (isinstance(value, str) or _is_token(value)):
            named[key] = _text_or_token(value, f"{stated[key]}: {key}")
    return roles, named


def _extra(
    source: Mapping[str, Any], stated: Mapping[str, str], named: dict[str, str | tokenizers.AddedToken]
) -> list[str | tokenizers.AddedToken] | None:
    """Further special tokens; those of an object are put among the `named` ones."""
    given = [(name, source[name]) for name in EXTRA if source.get(name) is not None]
    objects = [(name, value) for name, value in given if isinstance(value, dict) and not _is_token(value)]
    for name, value in objects:
        for key, token in value.items():
            named[key] = _text_or_token(token, f"{stated[name]}: {name}[{quote(key)}]")
    lists = [(name, value) for name, value in given if not isinstance(value, dict)]
    for name, value in lists:
        if not isinstance(value, list):
            raise TokenizerError(f"{stated[name]}: {name} is {quote(value)}, expected a list of tokens, or an object")
    filled = next(((name, value) for name, value in lists if value), lists[0] if lists else None)
    if filled is None:
        return None
    name, value = filled
    return [_text_or_token(token, f"{stated[name]}: {name}[{i}]") for i, token in enumerate(value)]


def _legacy(
    folder: CheckpointFolder, have: Collection[str], special: Collection[str], raw: Mapping[str, Any] | None
) -> dict[int, tokenizers.AddedToken]:
    """The tokens of added_tokens.json and of tokenizer.json, which tokenizer_config.json does not repeat."""
    from tokenizers import AddedToken

    found: dict[int, tokenizers.AddedToken] = {}
    if "added_tokens.json" in have:
        path = folder.where("added_tokens.json")
        for content, index in tokenizer_json(folder, "added_tokens.json").items():
            if type(index) is not int or not 0 <= index < MAX_ID or not content:
                raise TokenizerError(f"{path}: {quote(content)} has the id {quote(index)}")
            found[index] = AddedToken(content, normalized=content not in special, special=content in special)
    tokens = (raw or {}).get("added_tokens")
    for i, token in enumerate(tokens if isinstance(tokens, list) else ()):
        index = token.get("id") if isinstance(token, dict) else None
        if type(index) is int and 0 <= index < MAX_ID:  # else the library gives it its id
            found[index] = _token(token, f"{folder.where('tokenizer.json')}: added_tokens[{i}]")
    return found


def add_tokens(
    folder: CheckpointFolder,
    backend: tokenizers.Tokenizer,
    special: Mapping[str, str | tokenizers.AddedToken],
    extra: Iterable[str | tokenizers.AddedToken],
    added: Mapping[int, tokenizers.AddedToken],
    check_ids: bool,
) -> None:
    """Make the added and the special tokens unsplittable, as transformers' classes do.

    special: the tokens of the roles and a model's own.  check_ids: raise TokenizerError where a token of `added` has
    another id than its own.
    """
    from tokenizers import AddedToken

    known = backend.get_added_tokens_decoder()
    names = {text_of(token) for token in special.values()}
    same = {repr(token) for token in known.values() if token.special or token.content not in names}
    tokens: list[Any] = [token for _, token in sorted(added.items()) if repr(token) not in same]
    contents = {token.content for token in (*known.values(), *tokens)}
    others = [token for token in (*special.values(), *extra) if text_of(token) not in contents]
    tokens += [AddedToken(token, special=True) if isinstance(token, str) else token for token in others]
    for token in tokens:  # of two with one text the second one's flags count
        if token.content in names:
            token.special = True
    check_added((token.content for token in tokens), folder)
    # All at once: the library makes its search for them anew at each call.
    backend.add_tokens(tokens)
    for index, token in added.items() if check_ids else ():
        if (found := backend.token_to_id(token.content)) != index:
            raise TokenizerError(f"{folder}: the added token {quote(token.content)} has the id {found}, not {index}")


def texts_of(roles: Mapping[str, str | tokenizers.AddedToken]) -> Roles:
    """The texts of the roles' tokens."""
    return Roles({role: text_of(token) for role, token in roles.items()})


def text_of(token: str | tokenizers.AddedToken) -> str:
    """The text of a token."""
    return token if isinstance(token, str) else token.content


def _is_token(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def _as_special(value: Any) -> Any:
    """A token of special_tokens_map.json, which is special whatever its object says."""
    if isinstance(value, list):
        return [_as_special(one) for one in value]
    return {**value, "special": True} if _is_token(value) else value


def _text_or_token(value: Any, where: str) -> str | tokenizers.AddedToken:
    return value if isinstance(value, str) and value else _token(value, where)


def _token(value: Any, where: str) -> tokenizers.AddedToken:
    """A token with its flags; it is normalized unless it is special, or says otherwise."""
    from tokenizers import AddedToken

    if isinstance(value, str) and value:
        return AddedToken(value)
    if not _is_token(value) or not value["content"]:
        raise TokenizerError(f"{where} is {quote(value)}, expected a token or an object with its content")
    flags: Any = {name: value[name] for name in _FLAGS if name in value}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TokenizerError(f"{where}: {name} is {quote(flag)}, expected true or false")
    return AddedToken(value["content"], **flags)
