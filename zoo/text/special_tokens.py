"""The special and the added tokens that the files beside a vocabulary declare."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..errors import TokenizerError
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import MAX_ID, check_added, shown
from .tokenizer_json import MAX_NODES

if TYPE_CHECKING:
    import tokenizers

LIMIT = 64 << 20  # bytes of one tokenizer file; the largest on the hub are near 35 MB
ROLES = ("pad", "cls", "sep", "mask", "unk", "bos", "eos")


def tokenizer_json(folder: CheckpointFolder, name: str) -> dict[str, Any]:
    """The object in one of a tokenizer's files."""
    return folder.json(name, LIMIT, TokenizerError, MAX_NODES)


def special_tokens(
    folder: CheckpointFolder, have: Collection[str], config: dict[str, Any]
) -> tuple[dict[str, str | tokenizers.AddedToken], dict[int, tokenizers.AddedToken]]:
    """The declared tokens by role (a plain string where its flags are not stated), and the added tokens by id.

    As in transformers: `added_tokens_decoder` makes special_tokens_map.json and added_tokens.json void; without it
    special_tokens_map.json outranks tokenizer_config.json.
    """
    where = "tokenizer_config.json"
    added: dict[int, tokenizers.AddedToken] = {}
    source = dict(config)
    decoder = config.get("added_tokens_decoder")
    if decoder is not None:
        if not isinstance(decoder, dict):
            raise TokenizerError(f"{folder.where(where)}: added_tokens_decoder is not an object")
        for key, value in decoder.items():
            if not (key.isascii() and key.isdecimal() and len(key) <= 9):
                raise TokenizerError(f"{folder.where(where)}: added_tokens_decoder has {shown(key)}, expected an id")
            added[int(key)] = _added(value, special=False, where=f"{folder.where(where)}: added_tokens_decoder[{key}]")
    elif "special_tokens_map.json" in have:
        source.update(tokenizer_json(folder, "special_tokens_map.json"))
        where = "special_tokens_map.json"
    flags = {token.content: token for token in added.values()}
    declared: dict[str, str | tokenizers.AddedToken] = {}
    for role in ROLES:
        if (value := source.get(f"{role}_token")) is not None:
            token = _added(value, special=True, where=f"{folder.where(where)}: {role}_token")
            unstated = token.content if isinstance(value, str) else token
            declared[role] = flags.get(token.content, unstated)
    if decoder is None and "added_tokens.json" in have:
        special = {token if isinstance(token, str) else token.content for token in declared.values()}
        for content, index in tokenizer_json(folder, "added_tokens.json").items():
            if type(index) is not int or not 0 <= index < MAX_ID:
                raise TokenizerError(f"{folder.where('added_tokens.json')}: {shown(content)} has the id {shown(index)}")
            added[index] = _added(content, special=content in special, where=folder.where("added_tokens.json"))
    return declared, added


def _added(value: Any, *, special: bool, where: str) -> tokenizers.AddedToken:
    from tokenizers import AddedToken

    if isinstance(value, str) and value:
        return AddedToken(value, special=special, normalized=not special)
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(content, str) and content:
        options: Any = {k: value[k] for k in ("lstrip", "rstrip", "single_word", "normalized", "special") if k in value}
        if all(isinstance(flag, bool) for flag in options.values()):
            return AddedToken(content, **{"special": special, **options})
    raise TokenizerError(f"{where} is {shown(value)}, expected a token or an object with its content")


def add_tokens(
    folder: CheckpointFolder,
    backend: tokenizers.Tokenizer,
    roles: dict[str, str],
    declared: dict[str, str | tokenizers.AddedToken],
    added: dict[int, tokenizers.AddedToken],
    config: dict[str, Any],
    bert: bool,
    built: bool,
) -> None:
    """Make the special and added tokens unsplittable; a token that tokenizer.json has keeps its flags."""
    from tokenizers import AddedToken

    known = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    new = {index: token for index, token in sorted(added.items()) if token.content not in known}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    extra = extra if isinstance(extra, list) else []
    others = [_added(value, special=True, where=f"{folder}: extra_special_tokens") for value in extra]
    check_added((token.content for token in (*new.values(), *others)), folder)
    # All at once: the library makes its search for them anew at each call.
    backend.add_tokens(list(new.values()))
    known.update((token.content, token) for token in new.values())
    for index, token in new.items() if built else ():
        if (found := backend.token_to_id(token.content)) != index:
            raise TokenizerError(f"{folder}: the added token {shown(token.content)} has the id {found}, not {index}")
    for role, content in roles.items():
        token = declared.get(role, content)
        if isinstance(token, str):  # RoBERTa's mask takes the space before it along, as a word's token would
            token = AddedToken(content, special=True, normalized=False, lstrip=role == "mask" and not bert)
        token = known.setdefault(content, token)
        token.special = True
        backend.add_special_tokens([token])
    backend.add_special_tokens([token for token in others if token.content not in known])
