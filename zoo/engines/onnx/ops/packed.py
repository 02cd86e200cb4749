"""Products with quantised matrices, and rows of int8 tables, without dequantising them in the file.

ONNX Runtime's MatMulNBits also quantises its inputs in blocks (accuracy_level 4: int8).  Without that, one token takes
4 times as long with int4 and 80 times with int8, on AVX2.  With the standard's operators matrices are float32.
"""

from __future__ import annotations

import numpy as np

from ....quant import QuantRows
from ....quant.kinds import BLOCK
from .graph import MICROSOFT
from .symbol import FLOAT, Symbol

BITS = {"INT8_32": 8, "INT4_32": 4}


def kind_of(matrix: Symbol) -> str | None:
    """The quantisation that all parts of a constant have in common, or None."""
    kinds = {p.kind.name if isinstance(p, QuantRows) else None for p in matrix.graph.constants[matrix.name].parts}
    return kinds.pop() if len(kinds) == 1 else None


def fields(matrix: Symbol) -> list[np.ndarray]:
    """The arrays of a quantised constant, concatenated over its parts."""
    parts = matrix.graph.constants[matrix.name].parts
    each = zip(*(part.arrays for part in parts if isinstance(part, QuantRows)), strict=True)
    return [arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for arrays in each]


def linear(x: Symbol, weight: Symbol, bias: Symbol | None) -> Symbol | None:
    """x (..., I) times a matrix (O, I) quantised in blocks -> (..., O); None for other matrices."""
    bits = BITS.get(kind_of(weight) or "") if weight.is_constant else None
    if bits is None or x.graph.standard:
        return None
    O, I = weight.shape  # noqa: E741
    key = "blocks", weight.name
    if key not in x.graph.memo:
        data, scale = fields(weight)
        whole = data.view(np.uint8) + np.uint8(128) if bits == 8 else data
        x.graph.memo[key] = whole.reshape(O, -1, BLOCK * bits // 8), scale.astype(np.float32)
    attributes = {"K": I, "N": O, "bits": bits, "block_size": BLOCK, "accuracy_level": 4}
    inputs = [x, *x.graph.memo[key], "", "", *([] if bias is None else [bias])]
    return x.new("MatMulNBits", inputs, (*x.shape[:-1], O), domain=MICROSOFT, **attributes)


def embedding(ids: Symbol, table: Symbol) -> Symbol | None:
    """Rows (..., D) of an int8 table (V, D); None for other tables."""
    if not table.is_constant or kind_of(table) != "INT8":
        return None
    key = "int8 table", table.name
    if key not in table.graph.memo:
        table.graph.memo[key] = tuple(fields(table))
    return rows(ids, table, *table.graph.memo[key])


def rows(ids: Symbol, table: Symbol, data: np.ndarray, scale: np.ndarray) -> Symbol:
    """Rows (..., D) of data (V, D) int8, each times its scale (V,)."""
    found = table.new("Gather", [data, ids], (*ids.shape, data.shape[1]), np.dtype(np.int8), axis=0).to(FLOAT)
    return found * table.new("Gather", [scale[:, None], ids], (*ids.shape, 1), axis=0)
