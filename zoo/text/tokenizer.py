"""Tokenizer: text to padded int64 arrays and back, with the `tokenizers` library alone."""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import InputError, TokenizerError, nearest, quantity
from ..files.folder import CheckpointFolder
from .encodings import Encoding, Encodings, pad, width_of
from .given import given_ids, given_texts
from .long_pairs import LongPairs
from .long_texts import LONG_TEXT, MAX_UNCUT, beginning, boundaries, interruptible, parts_of
from .post_processors import change_language
from .special_tokens import ROLES
from .tidy import tidy_spaces
from .tokenizer_classes import text_of_bytes
from .tokenizer_files import Loaded, Side, load_files
from .tokenizer_json import sibling, translate_rust_errors

if TYPE_CHECKING:
    import tokenizers

Truncation = bool | Literal["only_first", "only_second", "longest_first"]
Texts = str | Iterable[str]

BACKENDS_KEPT = 32


class Tokenizer:
    """A checkpoint's tokenizer.  It does not change after loading: threads may share one.

    `pad_token`, `cls_token`, ... are None, like their ids, where the tokenizer has no such token.
    """

    pad_token: str | None
    cls_token: str | None
    sep_token: str | None
    mask_token: str | None
    unk_token: str | None
    bos_token: str | None
    eos_token: str | None
    pad_token_id: int | None
    cls_token_id: int | None
    sep_token_id: int | None
    mask_token_id: int | None
    unk_token_id: int | None
    bos_token_id: int | None
    eos_token_id: int | None
    model_max_length: int | None  # tokens; None where neither the files nor the caller set a limit
    padding_side: Side
    truncation_side: Side
    is_pair_typed: bool  # True if the tokens of a second text get token_type_id 1
    special_tokens_map: dict[str, str]  # "pad_token" -> its text; also a model's own, as "image_token"
    vocab_size: int  # with the added tokens
    all_special_ids: frozenset[int]
    folder: CheckpointFolder
    files: list[str]  # the files of `folder` that it was read from, and that `save` copies
    languages: dict[str, int]  # the tokens that say a text's language, and their ids; empty for most
    source: str  # the place of its vocabulary, for messages

    def __init__(self, loaded: Loaded, *, model_max_length: int | None = None) -> None:
        self.backend, self._piece_ids, self._prepare = loaded.backend, loaded.ids, loaded.prepare
        self._target = None if loaded.target is None else Tokenizer(loaded.target, model_max_length=model_max_length)
        self.folder, self.files, self.chat_template = loaded.folder, loaded.files, loaded.chat_template
        self.source = self.folder.where(self.files[0])
        self.special_tokens_map = {**{f"{role}_token": t for role, t in loaded.roles.items()}, **loaded.named}
        for role in ROLES:
            token = loaded.roles.get(role)
            setattr(self, f"{role}_token", token)
            setattr(self, f"{role}_token_id", None if token is None else self._id_or_none(token))
        self.model_max_length = loaded.model_max_length or model_max_length
        self.padding_side, self.truncation_side = loaded.padding_side, loaded.truncation_side
        if self._piece_ids is None:
            self.vocab_size = self.backend.get_vocab_size(with_added_tokens=True)
            added = self.backend.get_added_tokens_decoder()
            self.all_special_ids = frozenset(index for index, token in added.items() if token.special)
        else:
            self.vocab_size = len(self._piece_ids.ids)
            self.all_special_ids = frozenset(map(self._piece_ids.ids.__getitem__, self._piece_ids.special))
        self.languages = {name: i for name in loaded.languages if (i := self._id_or_none(name)) is not None}
        self._bytes = loaded.leaves_out_bytes
        self._tidies, self._typed, self._word_end = loaded.tidies, loaded.typed, loaded.word_end
        with translate_rust_errors(self.source):
            self.is_pair_typed = 1 in self.backend.encode("a", "a").type_ids and self._typed
        self._backends: dict[tuple[str, int, int], tokenizers.Tokenizer] = {}
        self._lock = threading.Lock()
        self._boundary: re.Pattern[str] | bool | None = None  # where texts can be cut; None until a long text comes
        self._pairs: LongPairs | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_backends": {}, "_lock": None, "_pairs": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @classmethod
    def from_folder(
        cls, folder: str | os.PathLike[str] | CheckpointFolder, *, model_max_length: int | None = None
    ) -> Tokenizer:
        """The tokenizer of a checkpoint's folder.

        `model_max_length` (tokens, special ones included) holds where the files state none; a model's limit of
        positions is a good value.
        """
        return cls(load_files(CheckpointFolder.of(folder)), model_max_length=model_max_length)

    def __call__(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        *,
        truncation: Truncation = True,
        max_length: int | None = None,
        stride: int = 0,
        overflow: bool = False,
        padding: bool | int = True,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> Encoding:
        """Texts, or pairs of texts, as one padded batch: `encode_batch`, then `pad`."""
        rows = self.encode_batch(
            texts, pairs, truncation=truncation, max_length=max_length, stride=stride, overflow=overflow
        )
        return self.pad(rows, padding=padding, padding_side=padding_side, pad_to_multiple_of=pad_to_multiple_of)

    def encode_batch(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        *,
        truncation: Truncation = True,
        max_length: int | None = None,
        stride: int = 0,
        overflow: bool = False,
        errors: dict[int, InputError] | None = None,
    ) -> Encodings:
        """Texts, or pairs of texts, as rows of unequal length.

        truncation: True is "longest_first"; False keeps everything.
        max_length: tokens of a row, special ones included; `model_max_length` where None.
        overflow: the text that truncation cuts off becomes further rows, each repeating `stride` tokens of the last.
        errors: gets the error of each text that cannot be encoded, which has no row then; without it, one is raised.

        As in transformers an empty second text is no pair in a call on two strings, and a pair in a call on lists.
        """
        if isinstance(texts, str) and isinstance(pairs, str) and not pairs:
            pairs = None
        first = given_texts(texts, "texts")
        second = None if pairs is None else given_texts(pairs, "pairs")
        if self._prepare is not None:
            first = [self._prepare(text) for text in first]
            second = None if second is None else [self._prepare(text) for text in second]
        if second is not None and (isinstance(texts, str) != isinstance(pairs, str) or len(first) != len(second)):
            raise InputError(f"pairs: {quantity(len(second), 'text')} for {len(first)} in texts, expected one for each")
        backend = self._backend(truncation, max_length, stride, overflow, second is not None)
        rows: list[tokenizers.Encoding] = []
        samples: list[int] = []
        sizes: dict[str, int] = {}  # tokens of texts beside windows: one question is often asked of many texts
        # One by one, since the library's own batches leave a thread pool behind that warns in every forked process.
        for i, text in enumerate(first):
            pair = None if second is None else second[i]
            try:
                if pair is not None and backend.truncation and stride:
                    self._check_window(i, text, pair, backend.truncation, sizes)
                row = self._row(backend, i, text, pair, overflow)
            except InputError as e:
                if errors is None:
                    raise
                errors[i] = e
                continue
            rows.append(row)
            if overflow:
                rows.extend(row.overflowing)
            samples.extend([i] * (len(rows) - len(samples)))
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        return Encodings(rows, lengths, np.array(samples, np.int64))

    def pad(
        self,
        encodings: Encodings,
        rows: Sequence[int] | np.ndarray | None = None,
        *,
        padding: bool | int = True,
        padding_side: Side | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> Encoding:
        """A padded batch of the chosen rows (all where None), in that order.

        padding: True pads to the longest row, a number to that many tokens, False refuses rows of unequal length.
        """
        index = np.arange(len(encodings.rows)) if rows is None else np.asarray(rows, np.int64)
        return pad(
            encodings,
            index,
            width_of(encodings.lengths[index], padding, pad_to_multiple_of),
            side=padding_side or self.padding_side,
            pad_id=self.pad_token_id,
            typed=self._typed,
        )

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of the texts that the model writes: this one, but for Marian's languages."""
        return self if self._target is None else self._target

    def decode(self, ids: Iterable[int] | np.ndarray, *, skip_special_tokens: bool = True) -> str:
        """The text of a row of ids; those past the vocabulary add nothing, as in transformers: models may be wider."""
        if self._piece_ids is not None:
            text = self._piece_ids.text(given_ids(ids), skip_special_tokens)
        elif self._bytes:
            own = [i for i in given_ids(ids) if not (skip_special_tokens and i in self.all_special_ids)]
            text = text_of_bytes(filter(None, self.tokens(own)))
        else:
            with translate_rust_errors(self.source):
                text = self.backend.decode(given_ids(ids), skip_special_tokens=skip_special_tokens)
        if self._word_end:
            text = text.replace(self._word_end, " ").strip()
        if self._tidies:
            text = tidy_spaces(text)
        return text

    def tokens(self, ids: Iterable[int] | np.ndarray) -> list[str | None]:
        """The token of each id; None past the vocabulary."""
        name = self.backend.id_to_token if self._piece_ids is None else self._piece_ids.names.get
        return [name(index) for index in given_ids(ids)]

    def id_of(self, token: str) -> int:
        """The id of a token of the vocabulary; InputError for anything else."""
        (text,) = given_texts(token, "token")
        if (index := self._id_or_none(text)) is None:
            row = self.encode_batch(text, truncation=False).rows[0]
            parts = self.tokens([i for i, own in zip(row.ids, row.sequence_ids, strict=True) if own is not None])
            raise InputError(f"{text!r} is not one token of the vocabulary: it is {parts}")
        return index

    def _id_or_none(self, token: str) -> int | None:
        return self.backend.token_to_id(token) if self._piece_ids is None else self._piece_ids.ids.get(token)

    def vocabulary(self) -> dict[str, int]:
        """The id of each token, of added ones too."""
        return self.backend.get_vocab(with_added_tokens=True) if self._piece_ids is None else dict(self._piece_ids.ids)

    def added_tokens(self) -> dict[str, int]:
        """The ids of the tokens that are never cut."""
        if self._piece_ids is not None:
            return {token: self._piece_ids.ids[token] for token in self._piece_ids.special}
        return {token.content: index for index, token in self.backend.get_added_tokens_decoder().items()}

    def special_tokens_to_add(self, pair: bool = False) -> int:
        """The number of special tokens that a row gets beside its text."""
        return self.backend.num_special_tokens_to_add(pair)

    @property
    def fits_tokenizer_json(self) -> bool:
        """False where a tokenizer.json cannot say how texts become ids: for Marian's and SigLIP's tokenizers.

        Their offsets are those of the texts as they are normalised.
        """
        return self._prepare is None and self._piece_ids is None

    @property
    def lowers(self) -> bool:
        """True if texts are read in small letters."""
        parts = parts_of(self.backend.normalizer)
        return any(part["type"] == "Lowercase" or bool(part.get("lowercase")) for part in parts)

    def with_lowercase(self) -> Tokenizer:
        """A tokenizer that reads every text in small letters, special tokens in it apart."""
        from tokenizers import normalizers

        if self.lowers:
            return self
        new = copy.copy(self)
        new.backend, new._boundary = sibling(self.backend), None
        steps = [] if self.backend.normalizer is None else [self.backend.normalizer]
        new.backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])
        return new

    def language_id(self, language: str, name: str = "language") -> int:
        """The id of one of `languages`; InputError for another.  name: of the argument, for the message."""
        if language not in self.languages:
            known = ", ".join(self.languages) or "none, as its texts have no token of a language"
            guess = nearest(str(language), self.languages)
            raise InputError(f"{name} is {language!r}, expected one of {known}{guess}")
        return self.languages[language]

    def with_language(self, language: str, name: str = "language") -> Tokenizer:
        """A tokenizer of texts in another of its `languages`; errors as of `language_id`."""
        new, index = copy.copy(self), self.language_id(language, name)
        new.backend, new._backends, new._lock, new._pairs = sibling(self.backend), {}, threading.Lock(), None
        change_language(new.backend, self.languages, (language, index))
        return new

    def save(self, folder: str | Path) -> list[Path]:
        """Copy the files that the tokenizer was loaded from, unchanged; returns their new paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.files:
            (folder / name).parent.mkdir(exist_ok=True)
            self.folder.copy(name, folder / name)
        return [folder / name for name in self.files]

    def _backend(
        self, truncation: Truncation, max_length: int | None, stride: int, overflow: bool, pair: bool
    ) -> tokenizers.Tokenizer:
        """A backend that truncates as asked, made once for each setting: a shared one may not be changed."""
        strategy = ("longest_first" if truncation else None) if isinstance(truncation, bool) else truncation
        if strategy not in (None, "longest_first", "only_first", "only_second"):
            raise InputError(
                f"truncation={truncation!r}, expected True, False, 'longest_first', 'only_first' or 'only_second'"
            )
        if max_length is not None and strategy is None:
            raise InputError(f"max_length={max_length} with truncation=False: expected one of them left out")
        limit = self.model_max_length if max_length is None else max_length
        if stride < 0 or ((stride or overflow) and (limit is None or strategy is None)) or (stride and not overflow):
            raise InputError(f"stride={stride}, overflow={overflow}: they need each other, truncation and a max_length")
        if strategy is None or limit is None:
            return self.backend
        if strategy == "only_second" and not pair:
            raise InputError("truncation='only_second' without a second text")
        if strategy == "longest_first" and pair and stride:
            raise InputError("stride with pairs needs truncation='only_first' or 'only_second'")
        room = limit - self.special_tokens_to_add(pair)
        if room < 0 or (overflow and room <= stride):
            raise InputError(
                f"max_length={limit} leaves {room} tokens beside the special ones, expected "
                f"{f'more than the stride of {stride}' if overflow else 'at least 0'}"
            )
        key = (strategy, limit, stride)
        with self._lock:
            if key not in self._backends:
                while len(self._backends) >= BACKENDS_KEPT:
                    del self._backends[next(iter(self._backends))]
                with translate_rust_errors(self.source):
                    backend = sibling(self.backend)
                backend.enable_truncation(limit, stride=stride, strategy=strategy, direction=self.truncation_side)
                self._backends[key] = backend
            return self._backends[key]

    def _check_window(self, i: int, text: str, pair: str, truncation: dict[str, Any], sizes: dict[str, int]) -> None:
        """InputError where a window, beside the text that is kept whole, would advance by no more than its stride."""
        whole, name = (text, "texts") if truncation["strategy"] == "only_second" else (pair, "pairs")
        room = truncation["max_length"] - self.special_tokens_to_add(True)
        if whole not in sizes:
            with translate_rust_errors(self.source):
                sizes[whole] = len(self.backend.encode(whole, add_special_tokens=False))
        if room - sizes[whole] <= truncation["stride"]:
            raise InputError(
                f"has {sizes[whole]} tokens of the {room} that max_length leaves: no room for a window "
                f"longer than the stride of {truncation['stride']}",
                argument=name,
                index=i,
            )

    def _row(
        self, backend: tokenizers.Tokenizer, i: int, text: str, pair: str | None, overflow: bool
    ) -> tokenizers.Encoding:
        """The row of a text or a pair; of a long one that is cut, only the beginning is read."""
        if len(text) + len(pair or "") >= LONG_TEXT and backend.truncation and not overflow:
            text, pair = self._beginnings(backend.truncation, text, pair)
            for name, one in (("texts", text), ("pairs", pair or "")):
                if len(one) > MAX_UNCUT:
                    problem = f"has {len(one)} characters, and no space between two words among the first {MAX_UNCUT}"
                    how = f"pass its beginning alone, such as text[:{MAX_UNCUT}]"
                    raise InputError(f"{problem}, where it could be cut: {how}", argument=name, index=i)
        row = self._encode(backend, i, text, pair, overflow)
        return row if self._piece_ids is None else self._piece_ids.row(row)

    def _beginnings(self, truncation: dict[str, Any], text: str, pair: str | None) -> tuple[str, str | None]:
        """The beginnings of long texts, enough for the same tokens after truncation."""
        if self._boundary is None:
            self._boundary = boundaries(self.backend) or False
        strategy, room, boundary = truncation["strategy"], truncation["max_length"], self._boundary
        if truncation["direction"] != "right" or isinstance(boundary, bool):
            return text, pair
        with translate_rust_errors(self.source):
            if strategy != "only_second" and len(text) >= LONG_TEXT and (pair is None or len(pair) < LONG_TEXT):
                # Beside another, the longer of two texts gets the odd token: it has to stay the longer one.
                other = 0 if pair is None else len(self.backend.encode(pair, add_special_tokens=False))
                text = beginning(self.backend, text, max(room, other + 1), boundary)
            elif strategy != "only_first" and pair is not None and len(pair) >= LONG_TEXT and len(text) < LONG_TEXT:
                other = len(self.backend.encode(text, add_special_tokens=False))
                pair = beginning(self.backend, pair, max(room, other + 1), boundary)
        return text, pair

    def _encode(
        self, backend: tokenizers.Tokenizer, i: int, text: str, pair: str | None, overflow: bool
    ) -> tokenizers.Encoding:
        settings = backend.truncation or {}
        try:
            with translate_rust_errors(self.source):
                if pair is not None and settings and not overflow and (row := self._long_pair(backend, text, pair)):
                    return row
                if len(text) + len(pair or "") < LONG_TEXT:
                    return backend.encode(text, pair)
                # Of the two, only encode_batch lets go of the interpreter's lock.
                many = [text if pair is None else (text, pair)]
                return interruptible(lambda: backend.encode_batch(many))[0]
        except TokenizerError as error:
            if "Truncation error" not in str(error):
                raise
            raise InputError(
                f"cannot be encoded with max_length={settings.get('max_length')}, "
                f"truncation={settings.get('strategy')!r}: {error}",
                argument="texts",
                index=i,
            ) from None

    def _long_pair(self, backend: tokenizers.Tokenizer, text: str, pair: str) -> tokenizers.Encoding | None:
        if self._pairs is None:
            bare = sibling(self.backend)
            bare.post_processor = None
            self._pairs = LongPairs(self.backend, bare)
        pairs = self._pairs
        if len(text) + len(pair) < LONG_TEXT:
            return pairs.row(backend, text, pair)
        return interruptible(lambda: pairs.row(backend, text, pair))
