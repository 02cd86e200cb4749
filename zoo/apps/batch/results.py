"""Results of tasks as columns of a table, with the same types for every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...tasks.results import ResultFormat

ERROR = {"error": "string"}


def columns_of(results: ResultFormat, options: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a task's result and of its error: name -> type."""
    return {**results.columns, **results.further_columns(options), **ERROR}


def to_plain(value: Any) -> Any:
    """The value as lists, dictionaries, texts and numbers, which JSON has."""
    if isinstance(value, np.ndarray):
        # Through text: a float32 needs 9 digits, and would get the 17 of its float64.
        return [to_plain(v) for v in value] if value.ndim > 1 else [float(str(v)) for v in value]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {k: to_plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(v) for v in value]
    return value


def arrow_type(kind: Any) -> Any:
    """pyarrow's type for one of the types above."""
    import pyarrow as pa

    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, arrow_type(one)) for name, one in kind.items()])
    return pa.type_for_alias(kind)
