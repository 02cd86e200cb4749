"""GenerationConfig: how to go on from a prompt, with the field names and defaults of generation_config.json."""

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

# New tokens where neither max_new_tokens nor max_length says how many, or fewer where the context has no more room.
DEFAULT_NEW_TOKENS = 512
# The power of a length: beyond it a double overflows.
MAX_LENGTH_PENALTY = 10
MAX_ROWS = 1_000  # beams, and continuations, of one prompt
MAX_FACTOR = 1e6  # of the penalty on what repeats: beyond it float32 overflows

# What transformers has and zoo has not -> the values with which it does nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "assistant_early_exit": (None,),
    "bad_words_ids": (None, []),
    "begin_suppress_tokens": (None, []),
    "constraints": (None,),
    "diversity_penalty": (None, 0),
    "dola_layers": (None,),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None,),
    "forced_bos_token_id": (None,),
    "forced_decoder_ids": (None,),
    "forced_eos_token_id": (None,),
    "guidance_scale": (None, 1),
    "max_time": (None,),
    "num_beam_groups": (None, 1),
    "penalty_alpha": (None, 0),
    "remove_invalid_values": (None, False),
    "renormalize_logits": (None, False),
    "sequence_bias": (None,),
    "suppress_tokens": (None, []),
    "token_healing": (None, False),
    "watermarking_config": (None,),
}
_NEUTRAL_IN_SAMPLING: dict[str, tuple[Any, ...]] = {
    "epsilon_cutoff": (None, 0),
    "eta_cutoff": (None, 0),
    "top_h": (None,),
    "typical_p": (None, 1),
}
# What files without sampling say where they mean none of it: transformers does not look at it then.
_NO_SAMPLING = {"temperature": 0, "top_p": 0, "top_k": -1}


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """What decides which tokens follow a prompt.

    max_new_tokens counts without the prompt, max_length with it; the first holds where both are given.
    Sampling (do_sample): temperature, then the top_k likeliest (0: all), then the fewest that have top_p of the
    probability, then those with at least min_p times that of the likeliest.  `seed`: None for other tokens every time.
    Beam search (num_beams > 1): a beam's score is the sum of its log-probabilities / tokens ** length_penalty;
    early_stopping: True ends at num_beams finished beams, False where a better one is unlikely, "never" where it cannot
    come.  repetition_penalty divides (multiplies, if negative) the scores of tokens that were there already;
    no_repeat_ngram_size: so many tokens in a row do not occur twice.
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
    no_repeat_ngram_size: int = 0
    stop_strings: tuple[str, ...] = ()
    eos_token_id: tuple[int, ...] = ()
    bos_token_id: int | None = None
    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of a file: what zoo does not read

    def __post_init__(self) -> None:
        set_ = lambda name, value: object.__setattr__(self, name, value)
        set_("eos_token_id", _ids("eos_token_id", self.eos_token_id))
        set_("stop_strings", _strings("stop_strings", self.stop_strings))
        for name in ("max_new_tokens", "max_length", "num_beams", "num_return_sequences"):
            set_(name, _whole(name, getattr(self, name), 1, optional=name.startswith("max")))
        for name in ("num_beams", "num_return_sequences"):
            if getattr(self, name) > MAX_ROWS:
                raise InputError(f"{name} is {getattr(self, name)}, expected at most {MAX_ROWS}")
        for name in ("min_new_tokens", "bos_token_id", "pad_token_id", "decoder_start_token_id", "seed"):
            set_(name, _whole(name, getattr(self, name), 0, optional=True))
        for name in ("min_length", "top_k", "no_repeat_ngram_size"):
            set_(name, _whole(name, getattr(self, name), 0))
        for name in ("temperature", "repetition_penalty"):
            value = _number(name, getattr(self, name))
            if value <= 0:
                hint = " (for the likeliest token each time say do_sample=False)" if name == "temperature" else ""
                raise InputError(f"{name} is {value}, expected a number above 0{hint}")
            set_(name, value)
        if not 1 / MAX_FACTOR <= self.repetition_penalty <= MAX_FACTOR:
            raise InputError(
                f"repetition_penalty is {self.repetition_penalty}, expected {1 / MAX_FACTOR:g} to {MAX_FACTOR:g}"
            )
        set_("length_penalty", _number("length_penalty", self.length_penalty))
        if abs(self.length_penalty) > MAX_LENGTH_PENALTY:
            raise InputError(
                f"length_penalty is {self.length_penalty}, expected -{MAX_LENGTH_PENALTY} to {MAX_LENGTH_PENALTY}"
            )
        set_("top_p", _number("top_p", self.top_p))
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}, expected a share above 0 and at most 1")
        if self.min_p is not None and not 0 <= _number("min_p", self.min_p) <= 1:
            raise InputError(f"min_p is {self.min_p}, expected a share from 0 to 1")
        if not isinstance(self.do_sample, bool):
            raise InputError(f"do_sample is {self.do_sample!r}, expected True or False")
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            raise InputError(f"early_stopping is {self.early_stopping!r}, expected True, False or 'never'")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: object = "generation_config.json") -> GenerationConfig:
        """The config of the object in a file; null is the default.  ConfigError where a value is none."""
        known = {f.name for f in dataclasses.fields(cls)} - {"extra", "seed"}
        void = {"pad_token_id": -1, **({} if raw.get("do_sample") else _NO_SAMPLING)}  # old files' "there is none"
        stated = {k: v for k, v in raw.items() if v is not None}
        values = {k: v for k, v in stated.items() if k in known and (k not in void or v != void[k])}
        try:
            return cls(**values, extra={k: v for k, v in stated.items() if k not in values})
        except InputError as e:
            raise ConfigError(f"{where}: {e}") from None

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str] | CheckpointFolder) -> GenerationConfig:
        """The config of a checkpoint: generation_config.json, or as transformers does without one, what config.json
        says of generation, itself or of its decoder (but for max_length = 20, which old ones state and nobody chose).
        """
        folder, name = CheckpointFolder.of(folder), "generation_config.json"
        if folder.has(name):
            return cls.from_dict(folder.json(name), folder.where(name))
        raw = folder.json("config.json")
        decoder = next((raw[k] for k in ("decoder", "generator", "text_config") if isinstance(raw.get(k), dict)), {})
        stated = {k: v for part in (decoder, raw) for k, v in part.items() if v is not None}
        if stated.get("max_length") == 20:
            del stated["max_length"]
        known = {f.name for f in dataclasses.fields(cls)} | _NEUTRAL.keys() | _NEUTRAL_IN_SAMPLING.keys()
        return cls.from_dict({k: v for k, v in stated.items() if k in known}, folder.where("config.json"))

    def replace(self, **options: Any) -> GenerationConfig:
        """The config with a caller's options in place of some of its own."""
        known = [f.name for f in dataclasses.fields(self) if f.name != "extra"]
        for name, value in options.items():
            if name in (_NEUTRAL.keys() | _NEUTRAL_IN_SAMPLING.keys()) and value is not None:
                raise UnsupportedError(f"{name} is not implemented")
            if name not in known:
                raise InputError(f"{name} is not an option of generation{nearest(name, known)}")
        # A caller's limit of one kind makes that of the other kind, which a file may have, void.
        if options.get("max_length") is not None and "max_new_tokens" not in options:
            options["max_new_tokens"] = None
        extra = {k: v for k, v in self.extra.items() if k not in options}
        new = dataclasses.replace(self, **options, extra=extra)
        for name in ("temperature", "top_k", "top_p", "min_p"):
            if options.get(name) is not None and not new.do_sample:
                raise InputError(f"{name} is for sampling, and do_sample is False: say do_sample=True, or leave it out")
        return new

    def check(self) -> None:
        """Refuse what does not go together, or is not implemented, where it would change the tokens."""
        neutral = {**_NEUTRAL, **(_NEUTRAL_IN_SAMPLING if self.do_sample else {})}
        for name, value in self.extra.items():
            if name in neutral and value not in neutral[name]:
                raise UnsupportedError(f"generation_config.json asks for {name} = {value!r}, which is not implemented")
        for name in _NO_SAMPLING if self.do_sample else ():
            if name in self.extra:
                raise InputError(f"generation_config.json has {name} = {self.extra[name]}: sampling needs another")
        if self.num_beams > 1 and self.do_sample:
            raise UnsupportedError(
                f"num_beams = {self.num_beams} with do_sample = True, sampled beams, is not implemented: "
                "say do_sample=False, or num_beams=1"
            )
        if not self.do_sample and self.num_return_sequences > self.num_beams:
            raise InputError(
                f"num_return_sequences is {self.num_return_sequences}, but there are {self.num_beams} beams: without "
                "do_sample=True a prompt has no more continuations than beams"
            )

    def check_vocabulary(self, size: int) -> None:
        """Refuse more beams than there are first tokens for."""
        if self.candidates > size:
            raise InputError(
                f"num_beams is {self.num_beams}, too many for a vocabulary of {size}: each step wants "
                f"{self.candidates} candidates"
            )

    @property
    def candidates(self) -> int:
        """How many continuations a step of beam search looks at: so many that num_beams of them do not end there."""
        return self.num_beams if self.num_beams == 1 else self.num_beams * max(2, 1 + len(self.eos_token_id))

    def new_tokens(self, prompt: int, context: int | None) -> int:
        """The most tokens that may follow a prompt of `prompt` tokens, where a model takes `context` in all."""
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
        """The new tokens before which none may end the row."""
        return self.min_length - prompt if self.min_new_tokens is None else self.min_new_tokens


def _whole(name: str, value: Any, least: int, optional: bool = False) -> int | None:
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
    return tuple(dict.fromkeys(_whole(name, v, 0) for v in values))  # type: ignore[misc]  (none is None)


def _strings(name: str, value: Any) -> tuple[str, ...]:
    values = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(values, Iterable) or isinstance(values, bytes | Mapping):
        raise InputError(f"{name} is {value!r}, expected a text or a list of texts")
    values = tuple(values)
    for text in values:
        if not isinstance(text, str) or not text:
            raise InputError(f"{name} holds {text!r}, expected texts that are not empty")
    return values
