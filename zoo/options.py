"""The options of loading: how a checkpoint is found, where and in which precision it computes, how it is trained."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from .errors import nearest


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keyword arguments of `zoo.load`, whose docstring explains them.

    zoo/keywords.py and zoo/__init__.pyi are written from it: `python -m checks.signatures`.
    """

    # Finding the files.
    revision: str | None = None
    local_files_only: bool = False
    cache_dir: str | os.PathLike[str] | None = None
    token: str | bool | None = None
    lock: str | os.PathLike[str] | None = None
    mmproj: str | os.PathLike[str] | None = None
    # Placing the model.
    device: str | None = None
    dtype: str | None = None
    weights: Literal["int8", "int4"] | None = None
    graphs: bool | None = None
    strict: bool = False  # tensors that the model does not know are an error, not a warning
    # Training it.
    trainable: bool = False
    new_head: bool = False
    num_labels: int | None = None
    id2label: Mapping[int, str] | Sequence[str] | None = None
    seed: int = 0
    adapter: str | os.PathLike[str] | None = None

    def update(self, more: Mapping[str, Any], taken: Collection[str] | None = None) -> Options:
        """These options with some changed; TypeError for a name that is no option, or not one of those `taken`.

        Options that other libraries have are taken where their value changes nothing.
        """
        taken, known = NAMES if taken is None else taken, dict(more)
        for name in sorted(more.keys() - set(taken)):
            from .peer_names import LOAD_OPTIONS

            value, (same, instead) = known.pop(name), LOAD_OPTIONS.get(name, ((), ""))
            if not any(value is one or (type(value) is type(one) and value == one) for one in same):
                what = instead or f"expected {', '.join(taken)}"
                raise TypeError(f"{name!r} is not an option here{'' if instead else nearest(name, taken)}: {what}")
        if isinstance(device := known.get("device"), int) and not isinstance(device, bool):  # as pipelines number them
            known["device"] = "cpu" if device < 0 else f"cuda:{device}"
        if known.get("dtype") is not None:
            known["dtype"] = dtype_name(known["dtype"])
        return replace(self, **known) if known else self


def dtype_name(dtype: Any) -> str:
    """The name of a dtype: of torch.float16, np.float16, "fp16" or "half" it is "float16"."""
    name = str(dtype.__name__ if isinstance(dtype, type) else dtype).removeprefix("torch.")
    return DTYPE_NAMES.get(name, name)


DTYPE_NAMES = {
    **dict.fromkeys(("fp16", "half", "f16"), "float16"),
    "bf16": "bfloat16",
    **dict.fromkeys(("fp32", "float", "f32"), "float32"),
    **dict.fromkeys(("fp64", "double", "f64"), "float64"),
}
NAMES = tuple(field.name for field in fields(Options))
# The names that functions take which do less than `zoo.load`; other options are errors there.
HUB = ("revision", "local_files_only", "cache_dir", "token")
FIND = (*HUB, "lock")
MODEL = tuple(name for name in NAMES if name != "graphs")
PLACE = ("device", "dtype", "weights", "trainable", "new_head", "seed")
DEFAULTS = Options()
