"""GenerationConfig: how tokens are chosen, with the field names and defaults of generation_config.json."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ConfigError, InputError, UnsupportedError, nearest
from ..files.folder import CheckpointFolder
from ..peer_names import GENERATION_NAMES, instead_of

# New tokens without max_new_tokens and max_length, or fewer if the model's context is shorter.
DEFAULT_NEW_TOKENS = 512
# The power of a length: beyond it a double overflows.
MAX_LENGTH_PENALTY = 10
MAX_ROWS = 1_000  # beams, and continuations, of one prompt
MAX_PENALTY, MAX_BIAS = 2, 100  # OpenAI has the same limits
MAX_FACTOR = 1e6  # a larger penalty on what repeats overflows float32

# Options of transformers that zoo does not have -> the values with which they do nothing.
_ONLY_NONE = (
    *("assistant_early_exit", "constraints", "dola_layers", "exponential_decay_length_penalty", "force_words_ids"),
    *("forced_decoder_ids", "max_time", "sequence_bias"),
    "watermarking_config",
)
_NEUTRAL_VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_ONLY_NONE, (None,)),
    **dict.fromkeys(("diversity_penalty", "encoder_no_repeat_ngram_size", "penalty_alpha"), (None, 0)),
    **dict.fromkeys(("encoder_repetition_penalty", "guidance_scale", "num_beam_groups"), (None, 1)),
    **dict.fromkeys(("remove_invalid_values", "renormalize_logits", "token_healing"), (None, False)),
}
_NEUTRAL_IN_SAMPLING: dict[str, tuple[Any, ...]] = {
    "epsilon_cutoff": (None, 0),
    "eta_cutoff": (None, 0),
    "top_h": (None,),
    "typical_p": (None, 1),
}
# Values in files without sampling that mean no value: transformers ignores them then.
_NO_SAMPLING = {"temperature": 0, "top_p": 0, "top_k": -1}


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """The options that decide which tokens follow a prompt.

    max_new_tokens counts without the prompt, max_length with it; if both are given, the first counts.
    Sampling (do_sample): temperature, then the top_k likeliest (0: all), then the fewest that have top_p of the
    probability, then those with at least min_p times that of the likeliest.  `seed`: None for other tokens every time.
    Beam search (num_beams > 1): a beam's score is the sum of its log-probabilities / tokens ** length_penalty;
    early_stopping: True ends at num_beams finished beams, False when a better one is unlikely, "never" when it is
    impossible.  repetition_penalty divides (multiplies, if negative) the scores of tokens that the row already has;
    frequency_penalty is subtracted from a token's score for each time that it was written, presence_penalty if it was
    (both -2 ... 2, prompts do not count), and logit_bias, token -> -100 ... 100, is added, as in OpenAI's interface.
    no_repeat_ngram_size: no sequence of this many tokens occurs twice.  forced_bos_token_id: the first new token after
    a prompt of one token, as an encoder's decoder has; forced_eos_token_id: the last token that there is room for.
    suppress_tokens never follow, begin_suppress_tokens not first (nor after a forced first one); bad_words_ids: lists
    of one token each, which never follow but for end tokens.
    table_tags: the tags of tables, whose rows then have one length (`zoo.generate.table_tags`).
    skip_special_tokens: False keeps them in texts and stop strings, but for those that end a text.
    Speculative decoding changes the speed alone: tokens are guessed, and the model checks them together.
    prompt_lookup_num_tokens: the number of tokens that are guessed from an earlier place with the same last tokens, up
    to max_matching_ngram_size (2) of them.  assistant_model: a smaller model with the same tokens, which guesses
    num_assistant_tokens, or ends with one whose probability is below assistant_confidence_threshold.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int | None = None
    min_length: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    min_p: float | None = None
    seed: int | None = None
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    num_return_sequences: int = 1
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    no_repeat_ngram_size: int = 0
    forced_bos_token_id: int | None = None
    forced_eos_token_id: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    prompt_lookup_num_tokens: int | None = None
    max_matching_ngram_size: int | None = None
    assistant_model: Any = field(default=None, repr=False, compare=False)
    num_assistant_tokens: int = 20
    assistant_confidence_threshold: float = 0.4
    stop_strings: tuple[str, ...] = ()
    skip_special_tokens: bool = True
    table_tags: Any = field(default=None, repr=False)
    eos_token_id: tuple[int, ...] = ()
    bos_token_id: int | None = None
    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)  # a file's fields that zoo does not know

    def __post_init__(self) -> None:
        set_ = lambda name, value: object.__setattr__(self, name, value)
        for name in ("eos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"):
            set_(name, _ids(name, getattr(self, name)))
        words = self.bad_words_ids or ()
        set_("bad_words_ids", tuple(_ids("bad_words_ids", one) for one in words) if _is_list(words) else words)
        if not _is_list(words) or any(len(one) != 1 for one in self.bad_words_ids):
            raise InputError(f"bad_words_ids is {words!r}, expected lists of one token each: longer ones are unknown")
        set_("stop_strings", _strings("stop_strings", self.stop_strings))
        for name in ("max_new_tokens", "max_length", "prompt_lookup_num_tokens", "max_matching_ngram_size"):
            set_(name, _check_whole(name, getattr(self, name), 1, optional=True))
        for name in ("num_beams", "num_return_sequences", "num_assistant_tokens"):
            set_(name, _check_whole(name, getattr(self, name), 1))
        for name in ("num_beams", "num_return_sequences"):
            if getattr(self, name) > MAX_ROWS:
                raise InputError(f"{name} is {getattr(self, name)}, expected at most {MAX_ROWS}")
        for name in (
            "min_new_tokens",
            "forced_bos_token_id",
            "bos_token_id",
            "pad_token_id",
            "decoder_start_token_id",
            "seed",
        ):
            set_(name, _check_whole(name, getattr(self, name), 0, optional=True))
        for name in ("min_length", "top_k", "no_repeat_ngram_size"):
            set_(name, _check_whole(name, getattr(self, name), 0))
        for name in ("temperature", "repetition_penalty"):
            value = _number(name, getattr(self, name))
            if value <= 0:
                hint = " (for the likeliest token each time pass do_sample=False)" if name == "temperature" else ""
                raise InputError(f"{name} is {value}, expected a number above 0{hint}")
            set_(name, value)
        if not 1 / MAX_FACTOR <= self.repetition_penalty <= MAX_FACTOR:
            raise InputError(
                f"repetition_penalty is {self.repetition_penalty}, expected {1 / MAX_FACTOR:g} to {MAX_FACTOR:g}"
            )
        for name in ("frequency_penalty", "presence_penalty"):
            value = _number(name, 0 if getattr(self, name) is None else getattr(self, name))
            if abs(value) > MAX_PENALTY:
                raise InputError(f"{name} is {value}, expected -{MAX_PENALTY} to {MAX_PENALTY}")
            set_(name, value)
        set_("logit_bias", _bias(self.logit_bias))
        set_("length_penalty", _number("length_penalty", self.length_penalty))
        if abs(self.length_penalty) > MAX_LENGTH_PENALTY:
            raise InputError(
                f"length_penalty is {self.length_penalty}, expected -{MAX_LENGTH_PENALTY} to {MAX_LENGTH_PENALTY}"
            )
        set_("top_p", _number("top_p", self.top_p))
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}, expected a share above 0 and at most 1")
        set_(
            "assistant_confidence_threshold",
            _number("assistant_confidence_threshold", self.assistant_confidence_threshold),
        )
        if not 0 <= self.assistant_confidence_threshold <= 1:
            raise InputError(
                f"assistant_confidence_threshold is {self.assistant_confidence_threshold}, expected 0 ... 1"
            )
        if self.min_p is not None and not 0 <= _number("min_p", self.min_p) <= 1:
            raise InputError(f"min_p is {self.min_p}, expected a share from 0 to 1")
        for name in ("do_sample", "skip_special_tokens"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {getattr(self, name)!r}, expected True or False")
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            raise InputError(f"early_stopping is {self.early_stopping!r}, expected True, False or 'never'")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: object = "generation_config.json") -> GenerationConfig:
        """The config from a file's object; null means the default.  ConfigError for a value out of range."""
        known = {f.name for f in dataclasses.fields(cls)} - {"extra", "seed", "assistant_model", "table_tags"}
        void = {"pad_token_id": -1, **({} if raw.get("do_sample") else _NO_SAMPLING)}  # old files' values for none
        stated = {k: v for k, v in raw.items() if v is not None}
        values = {k: v for k, v in stated.items() if k in known and (k not in void or v != void[k])}
        try:
            return cls(**values, extra={k: v for k, v in stated.items() if k not in values})
        except InputError as e:
            raise ConfigError(f"{where}: {e}") from None

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str] | CheckpointFolder) -> GenerationConfig:
        """The config of a checkpoint: generation_config.json or, as in transformers, the fields on generation in
        config.json or its decoder's part (without max_length = 20, an old default that files state).
        """
        folder, name = CheckpointFolder.of(folder), "generation_config.json"
        if folder.has(name):
            return cls.from_dict(folder.json(name), folder.where(name))
        raw = folder.json("config.json")
        decoder = next((raw[k] for k in ("decoder", "generator", "text_config") if isinstance(raw.get(k), dict)), {})
        stated = {k: v for part in (decoder, raw) for k, v in part.items() if v is not None}
        if stated.get("max_length") == 20:
            del stated["max_length"]
        known = {f.name for f in dataclasses.fields(cls)} | _NEUTRAL_VALUES.keys() | _NEUTRAL_IN_SAMPLING.keys()
        return cls.from_dict({k: v for k, v in stated.items() if k in known}, folder.where("config.json"))

    def replace(self, **options: Any) -> GenerationConfig:
        """The config with a caller's options."""
        known = [f.name for f in dataclasses.fields(self) if f.name != "extra"]
        neutral = {**_NEUTRAL_VALUES, **_NEUTRAL_IN_SAMPLING}
        for name, value in options.items():
            if name in neutral and value not in neutral[name]:
                raise UnsupportedError(f"{name} = {value!r} is not implemented")
            if name not in known and name not in neutral:
                instead = instead_of(name, GENERATION_NAMES) or nearest(name, known)
                raise InputError(f"{name} is not an option of generation{instead}")
        extra = {k: v for k, v in self.extra.items() if k not in options}
        options = {name: value for name, value in options.items() if name not in neutral}
        # A caller's max_length replaces a file's max_new_tokens.
        if options.get("max_length") is not None and "max_new_tokens" not in options:
            options["max_new_tokens"] = None
        new = dataclasses.replace(self, **options, extra=extra)
        for name in ("temperature", "top_k", "top_p", "min_p"):
            if options.get(name) is not None and not new.do_sample:
                raise InputError(f"{name} is for sampling, and do_sample is False: pass do_sample=True or leave it out")
        return new

    def check(self) -> None:
        """Refuse options that contradict each other, or that would change the tokens and are not implemented."""
        neutral = {**_NEUTRAL_VALUES, **(_NEUTRAL_IN_SAMPLING if self.do_sample else {})}
        for name, value in self.extra.items():
            if name in neutral and value not in neutral[name]:
                raise UnsupportedError(f"generation_config.json asks for {name} = {value!r}, which is not implemented")
        for name in _NO_SAMPLING if self.do_sample else ():
            if name in self.extra:
                raise InputError(f"generation_config.json has {name} = {self.extra[name]}, no value for sampling")
        if self.num_beams > 1 and self.do_sample:
            raise UnsupportedError(
                f"num_beams = {self.num_beams} with do_sample = True, sampled beams, is not implemented: "
                "pass do_sample=False, or num_beams=1"
            )
        guessed = [name for name in ("prompt_lookup_num_tokens", "assistant_model") if getattr(self, name) is not None]
        if len(guessed) == 2:
            raise InputError("prompt_lookup_num_tokens and assistant_model both guess tokens: expected one of them")
        if guessed and self.num_beams > 1:
            raise InputError(
                f"{guessed[0]} is for rows without beams, and num_beams is {self.num_beams}: leave one out"
            )
        if not self.do_sample and self.num_return_sequences > self.num_beams:
            raise InputError(
                f"num_return_sequences is {self.num_return_sequences}, but there are {self.num_beams} beams: without "
                "do_sample=True a prompt has no more continuations than beams"
            )

    @property
    def candidates(self) -> int:
        """The number of candidates in a step of beam search: enough that num_beams of them do not end."""
        return self.num_beams if self.num_beams == 1 else self.num_beams * max(2, 1 + len(self.eos_token_id))

    @property
    def hidden_tokens(self) -> tuple[int, ...] | None:
        """The special tokens that texts do not have; None: none of them is in a text."""
        forced = () if self.forced_bos_token_id is None else (self.forced_bos_token_id,)
        return None if self.skip_special_tokens else (*self.eos_token_id, *forced)

    def new_tokens(self, prompt: int, context: int | None) -> int:
        """The largest number of tokens after a prompt of `prompt` tokens, for a model of `context` tokens."""
        room = math.inf if context is None else context - prompt
        if room < 1:
            raise InputError(f"the prompt has {prompt} tokens, and the model's context is {context}: none can follow")
        if self.max_new_tokens is not None:
            if self.max_new_tokens > room:
                raise InputError(
                    f"max_new_tokens is {self.max_new_tokens}, but after a prompt of {prompt} tokens the model's "
                    f"context of {context} has room for {room}"
                )
            return self.max_new_tokens
        if self.max_length is not None:
            if self.max_length <= prompt:
                raise InputError(f"max_length is {self.max_length}, and the prompt has {prompt} tokens already")
            return int(min(self.max_length - prompt, room))
        return int(min(DEFAULT_NEW_TOKENS, room))

    def min_tokens(self, prompt: int) -> int:
        """The least number of new tokens."""
        return self.min_length - prompt if self.min_new_tokens is None else self.min_new_tokens


def _check_whole(name: str, value: Any, least: int, optional: bool = False) -> int | None:
    if optional and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 1 << 63:
        raise InputError(f"{name} is {value!r}, expected a whole number of at least {least}")
    return int(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"{name} is {value!r}, expected a finite number")
    return float(value)


def _ids(name: str, value: Any) -> tuple[int, ...]:
    values = () if value is None else value if isinstance(value, list | tuple | np.ndarray) else (value,)
    return tuple(dict.fromkeys(_check_whole(name, v, 0) for v in values))  # type: ignore[misc]  (none is None)


def _bias(value: Any) -> dict[int, float]:
    """Token -> what is added to its score; JSON has the tokens as texts."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"logit_bias is {value!r:.100}, expected an object of tokens and numbers")
    found = {}
    for token, bias in (value or {}).items():
        number = int(token) if isinstance(token, str) and token.isascii() and token.isdigit() else token
        found[_check_whole("a token of logit_bias", number, 0)] = one = _number(f"logit_bias of {token!r:.50}", bias)
        if abs(one) > MAX_BIAS:
            raise InputError(f"logit_bias of {token} is {one}, expected -{MAX_BIAS} to {MAX_BIAS}")
    return found  # type: ignore[return-value]  (no token is None)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _strings(name: str, value: Any) -> tuple[str, ...]:
    values = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(values, Iterable) or isinstance(values, bytes | Mapping):
        raise InputError(f"{name} is {value!r}, expected a text or a list of texts")
    values = tuple(values)
    for text in values:
        if not isinstance(text, str) or not text:
            raise InputError(f"{name} holds {text!r}, expected texts that are not empty")
    return values
