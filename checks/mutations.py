"""The faults that tests/kernels must find, each as an edit of a kernel's source.

`before` stands exactly once in the file; `tests` are the quickest that should find it, as pytest's -k takes them.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    module: str  # of zoo.engines.triton
    fault: str
    before: str
    after: str
    tests: str = ""  # of tests/kernels/test_<module>.py; empty: all of them


MUTATIONS: tuple[Mutation, ...] = (
    # attention
    Mutation(
        "attention",
        "an edge tile lets keys past the end in",
        "seen = (n < hi)[None, :]",
        "seen = (n <= hi)[None, :]",
        "sizes",
    ),
    Mutation(
        "attention",
        "a query does not see its own key",
        "n[None, :] <= (at + rows)[:, None]",
        "n[None, :] < (at + rows)[:, None]",
        "causal",
    ),
    Mutation(
        "attention",
        "start is not read",
        "at = tl.load(start + b).to(tl.int32)\n        hi = tl.minimum(S, at + tl.minimum(T",
        "at = 0\n        hi = tl.minimum(S, at + tl.minimum(T",
        "cache_of_rows",
    ),
    Mutation(
        "attention",
        "the keys of a causal tile end one too early",
        "at + tl.minimum(T, (tile + 1) * BM))",
        "at + tl.minimum(T, (tile + 1) * BM) - 1)",
        "causal",
    ),
    Mutation(
        "attention",
        "the interior reaches into the causal edge",
        "at + tile * BM + 1)",
        "at + tile * BM + BN)",
        "causal",
    ),
    Mutation(
        "attention",
        "the interior reaches past the keys",
        "tl.maximum(sure - lo, 0) // BN * BN",
        "(tl.maximum(sure - lo, 0) + BN - 1) // BN * BN",
        "sizes",
    ),
    Mutation(
        "attention",
        "a mask with holes counts as one without",
        "sure = tl.where(count == past - first, tl.minimum(sure, hi), 0)",
        "sure = tl.minimum(sure, hi)",
        "masks",
    ),
    Mutation(
        "attention", "the mask is not looked at within a tile", "seen = seen & (shown != 0)[None, :]", "pass", "masks"
    ),
    Mutation("attention", "the mask of the first row serves all", "mask += b * mask_b", "mask += 0", "masks"),
    Mutation(
        "attention",
        "the sum is not rescaled",
        "total = total * shrink + tl.sum(p, 1)",
        "total = total + tl.sum(p, 1)",
        "sizes",
    ),
    Mutation("attention", "the values are not rescaled", "acc = acc * shrink[:, None]", "acc = acc * 1.0", "sizes"),
    Mutation(
        "attention",
        "the interior is not scaled",
        "tl.exp2(s * scale - highest[:, None])",
        "tl.exp2(s - highest[:, None])",
        "sizes",
    ),
    Mutation(
        "attention",
        "bias is not brought to units of ln 2",
        "s += added.to(tl.float32) * LOG2E",
        "s += added.to(tl.float32)",
        "bias_is_broadcast",
    ),
    Mutation(
        "attention",
        "bias is read past its columns",
        "(n < width)[None, :]",
        "(n < width + 16)[None, :]",
        "bias_is_broadcast",
    ),
    Mutation(
        "attention", "bias of a wrong head", "b * bias_b + h * bias_h", "b * bias_b + g * bias_b", "bias_is_broadcast"
    ),
    Mutation("attention", "key heads go round instead of in runs", "g = h // R", "g = h % (H // R)", "share"),
    Mutation(
        "attention",
        "the largest score begins at -inf",
        "top = tl.full((BM,), -1.0e30, tl.float32)",
        'top = tl.full((BM,), float("-inf"), tl.float32)',
        "without_keys",
    ),
    Mutation(
        "attention", "a row without keys is divided by 0", "tl.where(total == 0, 1.0, total)", "total", "without_keys"
    ),
    Mutation(
        "attention",
        "rows past the queries are written",
        "inside = (rows < T)[:, None]",
        "inside = (rows < T + 1)[:, None]",
        "sizes",
    ),
    Mutation(
        "attention",
        "columns past the head are written",
        "        inside = inside & (columns < K)[None, :]\n    tl.store",
        "        pass\n    tl.store",
        "head_sizes",
    ),
    Mutation(
        "attention", "masked rows are not zeros", "mask=inside[:, None], other=0.0)", "mask=inside[:, None])", "sizes"
    ),
    # decode
    Mutation(
        "decode",
        "a query does not see its own key",
        "n[None, :] <= (at + t)[:, None]",
        "n[None, :] < (at + t)[:, None]",
        "numbers_of_keys",
    ),
    Mutation(
        "decode",
        "all queries stand where the first does",
        "(at + t)[:, None]",
        "(at + 0 * t)[:, None]",
        "queries_and_heads",
    ),
    Mutation(
        "decode",
        "a split reaches into the next",
        "hi = tl.minimum(lo + each, hi)",
        "hi = tl.minimum(lo + each + 1, hi)",
        "numbers_of_keys",
    ),
    Mutation(
        "decode",
        "splits leave keys out between them",
        "each = tl.cdiv(tl.cdiv(hi, N), BN) * BN",
        "each = hi // N",
        "numbers_of_keys",
    ),
    Mutation("decode", "a split has no end", "hi = tl.minimum(lo + each, hi)", "hi = lo + each", "numbers_of_keys"),
    Mutation(
        "decode", "the mask is not looked at", "seen = seen & (tl.load(mask", "seen = seen | (tl.load(mask", "masks"
    ),
    Mutation("decode", "values are not rescaled", "acc * shrink[:, None]", "acc", "numbers_of_keys"),
    Mutation(
        "decode",
        "scores are not scaled",
        "input_precision=PRECISION) * scale",
        "input_precision=PRECISION)",
        "numbers_of_keys",
    ),
    Mutation(
        "decode", "splits write over one another", "place = place * N + split", "place = place * N", "numbers_of_keys"
    ),
    Mutation(
        "decode",
        "the reduction does not rescale",
        "share = tl.exp2(top - tl.max(top, 0))",
        "share = tl.exp2(top - top)",
        "large_scores",
    ),
    Mutation(
        "decode",
        "the reduction reads what was not written",
        "written = (total > 0)[:, None] &",
        "written = (split < N)[:, None] &",
        "without_keys",
    ),
    Mutation(
        "decode",
        "the reduction reads past the splits",
        "tl.load(tops + place * N + split, mask=split < N, other=-1.0e30)",
        "tl.load(tops + place * N + split, mask=split <= N, other=-1.0e30)",
        "numbers_of_keys",
    ),
    Mutation(
        "decode",
        "heads of a group are swapped with queries",
        "h = g * R + row % R",
        "h = g * R + row // T % R",
        "queries_and_heads",
    ),
    # norms
    Mutation(
        "norm",
        "variance counts the padding",
        "value = tl.where(columns < D, value, 0.0)",
        "value = tl.where(columns < BD, value, 0.0)",
    ),
    Mutation("norm", "the residual is not added", "value += tl.load(residual", "value += 0 * tl.load(residual"),
    Mutation("norm", "eps outside of the root", "/ D + eps)", "/ D) + eps"),
    Mutation(
        "norm",
        "mean over the padded width",
        "tl.sum(value, 1, keep_dims=True) / D",
        "tl.sum(value, 1, keep_dims=True) / BD",
    ),
    Mutation(
        "norm",
        "the mean of squares over one less",
        "tl.sum(value * value, 1, keep_dims=True) / D",
        "tl.sum(value * value, 1, keep_dims=True) / (D - 1)",
    ),
    Mutation(
        "norm",
        "the bias is not added",
        "value = value * scale + tl.load(bias",
        "value = value * scale + 0 * tl.load(bias",
    ),
    Mutation(
        "norm",
        "the sum is normalised before it is rounded",
        "value = rounded.to(tl.float32)",
        "pass",
        "sum_as_it_is_stored",
    ),
    Mutation(
        "norm",
        "the quotient of RMSNorm is not rounded",
        "value = value.to(out.dtype.element_ty).to(tl.float32) * scale",
        "value = value * scale",
        "quotient",
    ),
    Mutation(
        "norm",
        "rows past the last are touched",
        "inside = (rows < M) & (columns < D)",
        "inside = (rows <= M) & (columns < D)",
    ),
    Mutation("norm", "the residual is read by the stride of x", "rows * residual_m", "rows * x_m", "strided"),
    # softmax
    Mutation(
        "softmax",
        "padding counts as zeros",
        'tl.load(x + rows * x_m + columns, mask=inside, other=float("-inf"))',
        "tl.load(x + rows * x_m + columns, mask=inside, other=0.0)",
    ),
    Mutation("softmax", "a row of -inf is NaN", "return tl.where(total == 0, 1.0, total)", "return total"),
    Mutation(
        "softmax",
        "the largest is not subtracted",
        "_finite(tl.max(value, 1, keep_dims=True))",
        "0 * _finite(tl.max(value, 1, keep_dims=True))",
    ),
    Mutation(
        "softmax", "a long row's sum is not rescaled", "total = total * tl.exp2((top - shift) * LOG2E)", "total = total"
    ),
    Mutation(
        "softmax",
        "rows are written where the input has them",
        "tl.store(out + rows * D + columns",
        "tl.store(out + rows * x_m + columns",
        "strided",
    ),
    Mutation(
        "softmax",
        "powers of 2 instead of e",
        "value = tl.exp2((value - _finite(tl.max(value, 1, keep_dims=True))) * LOG2E)",
        "value = tl.exp2(value - _finite(tl.max(value, 1, keep_dims=True)))",
    ),
    # activations
    Mutation(
        "activations", "tanh's gelu for erf's", "tl.erf(z) if EXACT else erf(z)", "2 * tl.sigmoid(2.2567583342 * z) - 1"
    ),
    Mutation(
        "activations",
        "gate and up swapped",
        "activate(gate, ACT, EXACT) * up",
        "activate(up, ACT, EXACT) * gate",
        "glu",
    ),
    Mutation(
        "activations",
        "up is read from the gate's half",
        "tl.load(x + F, mask=inside",
        "tl.load(x + F - 1, mask=inside",
        "glu",
    ),
    Mutation(
        "activations",
        "the bias is that of the row's number",
        "tl.load(bias + columns",
        "tl.load(bias + columns * 0 + row",
    ),
    Mutation(
        "activations",
        "the coarse erf for float32",
        "EXACT: tl.constexpr = x.dtype.element_ty == tl.float32\n    tl.store(x,",
        "EXACT: tl.constexpr = False\n    tl.store(x,",
        "exact_erf",
    ),
    Mutation(
        "activations", "relu loses NaN", "y = tl.where(x < 0, 0.0, x)\n", "y = tl.where(x > 0, x, 0.0)\n", "infinities"
    ),
    Mutation(
        "activations", "tanh without its series", "tl.where(z < 0.3, series", "tl.where(z < 0.0, series", "wide_range"
    ),
    Mutation(
        "activations",
        "the tail of a row is not masked",
        "    inside = columns < F\n    x += row * x_m + columns\n    value",
        "    inside = columns < F + 1\n    x += row * x_m + columns\n    value",
    ),
    # rope
    Mutation("rope", "turned the other way", "(x * c - y * s)", "(x * c + y * s)"),
    Mutation("rope", "the halves take each other's angle", "(y * c + x * s)", "(y * s + x * c)"),
    Mutation("rope", "neighbours instead of halves", "y = tl.load(source + HALF, mask", "y = tl.load(source + 1, mask"),
    Mutation(
        "rope", "written past the capacity", "(place >= 0) & (place < S)", "(place >= 0) & (place <= S)", "does_not_fit"
    ),
    Mutation("rope", "written before the beginning", "(place >= 0) & (place < S)", "place < S", "does_not_fit"),
    Mutation(
        "rope",
        "a place of 32 bits",
        "tl.load(start + b).to(tl.int64) + t",
        "(tl.load(start + b).to(tl.int32) + t.to(tl.int32)).to(tl.int64)",
        "does_not_fit",
    ),
    Mutation("rope", "start is not read", "place = tl.load(start + b).to(tl.int64) + t", "place = t"),
    Mutation(
        "rope",
        "values go where keys would",
        "values + b * values_b + place * values_s",
        "values + b * keys_b + place * keys_g",
    ),
    Mutation(
        "rope",
        "angles of the first row serve all",
        "    angles = b * cos_b + t * HALF\n    _turn(",
        "    angles = t * HALF\n    _turn(",
    ),
    Mutation(
        "rope",
        "values lose their second half",
        "tl.store(target + HALF, tl.load(source + HALF",
        "tl.store(target + HALF, tl.load(source",
    ),
    Mutation(
        "rope",
        "heads past the last are touched",
        "    inside = (h < heads) & (i < HALF)\n    c = ",
        "    inside = (h <= heads) & (i < HALF)\n    c = ",
    ),
    # gemv
    Mutation(
        "gemv", "rows past the last are written", "live = rows < outputs", "live = rows <= outputs", "every_config"
    ),
    Mutation(
        "gemv",
        "columns past the last are read",
        "inside = first + columns < inputs",
        "inside = first + columns <= inputs",
    ),
    Mutation(
        "gemv",
        "the activation is of the sum with the residual",
        "tl.store(out + rows, y.to(out",
        "tl.store(out + rows, activate(y, ACT, False).to(out",
    ),
    Mutation(
        "gemv", "products in 16 bits", "w.to(tl.float32) * v.to(tl.float32)[None, :]", "(w * v[None, :]).to(tl.float32)"
    ),
    Mutation("gemv", "only the last block counts", "total += w", "total = w"),
    Mutation("gemv", "the bias is not added", "y += tl.load(bias", "y += 0 * tl.load(bias"),
    # packed
    Mutation("packed", "a step is not read", "at // (256 // SIZE), mask=live", "0 * at, mask=live", "one_row"),
    Mutation("packed", "steps lie closer, where all are live", "at // (256 // SIZE)).to", "at // 16).to", "test_rows"),
    # packed_gemv
    Mutation("packed_gemv", "the number after is multiplied", "_number(w, 15 << 4, magic)", "_number(w, 15, magic)"),
    Mutation(
        "packed_gemv",
        "the upper half of a word is the lower one",
        "upper = w >> 16",
        "upper = w",
        "each_number",
    ),
    Mutation("packed_gemv", "numbers of four bits count from 7", "tl.sum(q, 2) - 8 * sums", "tl.sum(q, 2) - 7 * sums"),
    Mutation("packed_gemv", "the zero of a block is not read", "tl.sum(q, 2) - z * sums", "tl.sum(q, 2) - 8 * sums"),
    Mutation(
        "packed_gemv",
        "a block has the scale of its neighbour",
        "block = (first + groups * 16) // SIZE",
        "block = (first + groups * 16 + 16) // SIZE",
    ),
    Mutation(
        "packed_gemv",
        "the scales of the first blocks serve all",
        "s = of_blocks(scale, scale_step, at + first,",
        "s = of_blocks(scale, scale_step, at,",
    ),
    Mutation(
        "packed_gemv",
        "an offset is of the numbers, not of x",
        "at, live, EVEN, SIZE) * tl.sum(v, 1)[None, :]",
        "at, live, EVEN, SIZE) * tl.sum(q.to(tl.float32), 2)",
        "each_number",
    ),
    Mutation(
        "packed_gemv",
        "offsets of four bits have the step of scales",
        "of_blocks(offset, offset_step, at + first",
        "of_blocks(offset, scale_step, at + first",
        "each_number",
    ),
    Mutation("packed_gemv", "a row has no scale", "y *= tl.load(scale + row)", "y *= 1.0"),
    Mutation(
        "packed_gemv",
        "columns past the last are read",
        "inside = first + columns < inputs",
        "inside = first + columns <= inputs",
    ),
    Mutation(
        "packed_gemv",
        "numbers that fill up a block meet what lies behind x",
        "mask=first * 32 + columns < inputs",
        "mask=first + groups[:, None, None] < blocks",
    ),
    Mutation(
        "packed_gemv",
        "blocks past the last are read",
        "live = (first + groups < blocks)",
        "live = (first + groups <= blocks)",
    ),
    Mutation("packed_gemv", "rows past the last are written", "live = rows < outputs", "live = rows <= outputs"),
    Mutation("packed_gemv", "only the last bytes count", "total += sums", "total = sums"),
    Mutation(
        "packed_gemv",
        "the coarse erf for float32",
        "EXACT: tl.constexpr = out.dtype.element_ty == tl.float32",
        "EXACT: tl.constexpr = False",
        "exact_erf",
    ),
    # packed_dot
    Mutation(
        "packed_dot",
        "the halves of a byte are swapped",
        "tl.interleave((stored & 15).to(tl.float32), (stored >> 4).to(tl.float32))",
        "tl.interleave((stored >> 4).to(tl.float32), (stored & 15).to(tl.float32))",
        "each_number",
    ),
    Mutation("packed_dot", "numbers of four bits count from 7", "w -= 8", "w -= 7", "each_number"),
    Mutation("packed_dot", "the zero of a block is not read", "if zero is not None:", "if False:", "each_number"),
    Mutation(
        "packed_dot", "offsets count from 8", "elif PER == 2 and offset is None:", "elif PER == 2:", "each_number"
    ),
    Mutation(
        "packed_dot",
        "an offset has no step",
        "of_blocks(offset, offset_step, ",
        "of_blocks(offset, None, ",
        "each_number",
    ),
    Mutation(
        "packed_dot",
        "the scales of the first blocks serve all",
        "s = of_blocks(scale, scale_step, now,",
        "s = of_blocks(scale, scale_step, at,",
        "rows",
    ),
    Mutation(
        "packed_dot",
        "zeros are read where a row of bytes begins",
        "of_blocks(zero, None, now,",
        "of_blocks(zero, None, now - row[:, None] * blocks,",
    ),
    Mutation("packed_dot", "a row has no scale", "total *= tl.load(scale + row)[:, None]", "total *= 1.0", "rows"),
    Mutation(
        "packed_dot",
        "columns past the last of x are read",
        "mask=(first + columns < inputs)[None, :]",
        "mask=(first + columns <= inputs)[None, :]",
        "rows",
    ),
    Mutation(
        "packed_dot",
        "bytes past the last of a row are read",
        "(first // PER + bytes < width)",
        "(first // PER + bytes <= width)",
        "rows",
    ),
    Mutation("packed_dot", "only the last tile counts", "tl.trans(v), total, input", "tl.trans(v), input", "rows"),
    Mutation("packed_dot", "products of TF32", 'input_precision="ieee"', 'input_precision="tf32"', "float32"),
    Mutation(
        "packed_dot", "the bias is not added", "total += tl.load(bias + o", "total += 0 * tl.load(bias + o", "rows"
    ),
    Mutation(
        "packed_dot",
        "outputs past the last are written",
        "live = o < outputs",
        "live = o <= outputs",
        "rows",
    ),
    Mutation(
        "packed_dot",
        "rows past the last are written",
        "inside = (m < M)[:, None]",
        "inside = (m <= M)[:, None]",
        "rows",
    ),
    Mutation("packed_dot", "the rows of x lie closer", "x_m + columns", "inputs + columns", "stride"),
    Mutation(
        "packed_dot",
        "the activation is of the sum with the residual",
        "tl.store(out + place, y.to(out",
        "tl.store(out + place, activate(y, ACT, EXACT).to(out",
        "rows",
    ),
)
