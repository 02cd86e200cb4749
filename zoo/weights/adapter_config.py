"""adapter_config.json of the package peft: every field of its LoraConfig is honoured, refused, or changes no result.

https://huggingface.co/docs/peft/package_reference/lora
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, ConfigError, UnsupportedError

HONOURED_FIELDS = (
    *("peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "use_dora", "lora_bias", "bias"),
    *("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "modules_to_save"),
    *("ensure_weight_tying", "trainable_token_indices", "init_lora_weights"),
)
# What training depended on, or where it was.  For fan_in_fan_out a layer's own order decides, in peft too.
IDLE_FIELDS = (
    *("task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode"),
    *("lora_dropout", "fan_in_fan_out", "runtime_config", "velora_config", "megatron_core", "qalora_group_size"),
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config"),
)
# Other methods: refused, as is a field that is unknown, unless it is null, false or empty.
REFUSED_FIELDS = (
    *("alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication", "megatron_config"),
    *("monteclora_config", "target_parameters", "use_bdlora", "use_qalora"),
)
# Where training began.  Loading, peft takes the first product of the second kind out of the base's matrices.
PLAIN_INITS = (True, False, None, "gaussian", "eva", "orthogonal", "mica", "lora_ga")
SUBTRACTED_INITS = ("pissa", "olora")
# A pattern that cannot take long on the name of a module: at most two repetitions, and none of a group.
MAX_PATTERN, MAX_REPEATS = 200, 2
_REPEAT, _COSTLY = re.compile(r"[*+]|\{\d*,"), re.compile(r"\)[*+{?]|\\\d|\(\?")


class AdapterConfig:
    """The fields of an adapter_config.json (`raw`), checked.

    subtracted: "pissa" or "olora" where that product is taken out of the base's matrices.
    ties: whether parts of the model that share an array share its adapter.
    """

    def __init__(self, path: Path, raw: Mapping[str, Any]):
        self.path, self.raw = path, raw
        if raw.get("peft_type", "LORA") != "LORA":
            raise UnsupportedError(f"{path}: peft_type = {raw['peft_type']!r:.200} is not implemented, only 'LORA' is")
        for name, value in raw.items():
            if name not in HONOURED_FIELDS and name not in IDLE_FIELDS and value not in (None, False, [], {}, ""):
                what = "is not implemented" if name in REFUSED_FIELDS else "is a field that zoo does not know"
                raise UnsupportedError(f"{path}: {name} = {value!r:.200} {what}: merge the adapter with peft")
        init = raw.get("init_lora_weights", True)
        if init not in (*PLAIN_INITS, *SUBTRACTED_INITS):
            known = ", ".join(map(repr, (*PLAIN_INITS, *SUBTRACTED_INITS)))
            raise UnsupportedError(
                f"{path}: init_lora_weights = {init!r:.200} is not implemented, only {known} are: merge the adapter "
                "with peft"
            )
        self.subtracted: str | None = init if init in SUBTRACTED_INITS else None
        self.rank, self.alpha = raw.get("r"), raw.get("lora_alpha")
        if type(self.rank) is not int or self.rank < 1 or not _is_number(self.alpha):
            raise ConfigError(f"{path}: r = {self.rank!r:.200} and lora_alpha = {self.alpha!r:.200}, expected numbers")
        self.ranks, self.alphas = self._patterns("rank_pattern"), self._patterns("alpha_pattern")
        self.ties = bool(raw.get("ensure_weight_tying"))
        saved = raw.get("modules_to_save") or []
        if not isinstance(saved, list) or not all(isinstance(name, str) for name in saved):
            raise ConfigError(f"{path}: modules_to_save = {saved!r:.200}, expected a list of names")
        self.saved = tuple(saved)
        if raw.get("bias", "none") not in ("none", "all", "lora_only"):
            raise ConfigError(f"{path}: bias = {raw['bias']!r:.200}, expected 'none', 'all' or 'lora_only'")
        if raw.get("use_dora") and raw.get("lora_bias"):
            raise UnsupportedError(f"{path}: use_dora and lora_bias together are not implemented, only one of them is")

    def scale(self, module: str, rank: int) -> float:
        """The factor of a module's product, whose A has `rank` rows; CheckpointError if the config says otherwise."""
        named = _match_pattern(self.ranks, module, self.rank)
        if rank != named:
            raise CheckpointError(f"{self.path}: the rank of {module} is {named}, and its lora_A has {rank} rows")
        alpha = _match_pattern(self.alphas, module, self.alpha)
        return alpha / (math.sqrt(rank) if self.raw.get("use_rslora") else rank)

    def check_target(self, module: str) -> None:
        """Raise CheckpointError for a module that the config leaves out: peft would ignore its matrices.

        Fields that are regular expressions are not checked: what they chose is what the file has.
        """
        raw, wanted, excluded = self.raw, self.raw.get("target_modules"), self.raw.get("exclude_modules")
        if isinstance(excluded, list) and _ends_with(module, excluded):
            field = "exclude_modules"
        elif not isinstance(wanted, list) or self.ties:
            return
        elif not _ends_with(module, wanted):
            field = "target_modules"
        elif not self._has_layer(module):
            field = "layers_to_transform"
        else:
            return
        raise CheckpointError(
            f"{self.path}: {field} = {raw[field]!r:.200} leaves out {module:.200}, whose matrices the adapter has and "
            "peft would ignore"
        )

    def is_saved(self, module: str) -> bool:
        """True if a module, or one around it, is trained as a copy beside the base's (`modules_to_save`)."""
        parts = module.split(".")
        around = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
        return any(name.endswith(self.saved) for name in around) if self.saved else False

    def rows(self, module: str) -> list[int]:
        """The rows of a module's matrix that are trained tokens."""
        given = self.raw.get("trainable_token_indices")
        if isinstance(given, dict):
            given = next((rows for name, rows in given.items() if module.endswith(name)), None)
        if not isinstance(given, list) or not all(type(row) is int and row >= 0 for row in given):
            raise ConfigError(f"{self.path}: trainable_token_indices = {given!r:.200}, expected rows of {module:.200}")
        return given

    def _has_layer(self, module: str) -> bool:
        layers, names = self.raw.get("layers_to_transform"), self.raw.get("layers_pattern") or [None]
        if layers is None or layers == []:
            return True
        for name in [names] if isinstance(names, str) else names:
            before = r".*?\.[^.]*" if name is None else rf"(?:^|.*?\.){re.escape(str(name))}"
            if found := re.match(rf"{before}\.(\d+)\.", module):
                return int(found[1]) in (layers if isinstance(layers, list) else [layers])
        return False

    def _patterns(self, field: str) -> dict[str, Any]:
        """rank_pattern or alpha_pattern: regular expressions of modules' names -> numbers."""
        found = self.raw.get(field) or {}
        if not isinstance(found, dict) or not all(_is_number(value) and value > 0 for value in found.values()):
            raise ConfigError(f"{self.path}: {field} = {found!r:.200}, expected an object of names and numbers")
        for pattern in found:
            if len(pattern) > MAX_PATTERN or len(_REPEAT.findall(pattern)) > MAX_REPEATS or _COSTLY.search(pattern):
                raise UnsupportedError(f"{self.path}: {field}: {pattern!r:.200} is too complicated a pattern")
            try:
                re.compile(pattern)
            except re.error as e:
                raise ConfigError(f"{self.path}: {field}: {pattern!r} is not a regular expression: {e}") from None
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ends_with(module: str, names: Collection[Any]) -> bool:
    return any(module == name or module.endswith(f".{name}") for name in names)


def _match_pattern(patterns: Mapping[str, Any], module: str, otherwise: Any) -> Any:
    """The value of the first pattern that the end of a module's name matches."""
    return next((v for key, v in patterns.items() if re.match(rf"(.*\.)?({key})$", module)), otherwise)
