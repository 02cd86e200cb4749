"""The README.md of an export: the inputs and outputs of its graphs, and code that runs them with ONNX Runtime alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...engines.onnx.signature import Signature
from ...engines.onnx.step import CROSS_KEYS, PAST_KEYS
from ...engines.onnx.trace import Traced

HEAD = """\
---
library_name: onnx
tags: [onnx, zoo]
---
# {name}, as ONNX graphs

Written by `zoo export` (zoo {version}), in {precision}.  `zoo.load(FOLDER, device="onnx")` runs it with its tokenizer
or image processor; ONNX Runtime alone runs it like this:

```python
{code}
```
"""
ONE_CALL = """\
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("{file}")
feed = {{
{feed}
}}
for output, array in zip(session.get_outputs(), session.run(None, feed)):
    print(output.name, array.shape)"""
# A decoder, token by token: the graph reads the cache from arrays with spare capacity, and the loop writes to them.
STEPS = """\
import numpy as np
import onnxruntime

{before}session, room, start = onnxruntime.InferenceSession("model.onnx"), 64, 0
inputs = [i for i in session.get_inputs() if i.name.startswith("{past}")]
past = {{i.name: np.zeros((1, i.shape[1], room, i.shape[3]), np.float32) for i in inputs}}
ids = np.array([[1, 2, 3]])  # from a tokenizer
for _ in range(8):
    feed = {{"input_ids": ids, "past_lengths": np.array([start]), "last": np.array([ids.shape[1] - 1]), **past{more}}}
    logits, *new = session.run(None, feed)
    for kept, x in zip(past.values(), new):
        kept[:, :, start : start + x.shape[2]] = x
    start, ids = start + ids.shape[1], logits.argmax(-1)[:, None]
    print(ids.item())"""
STATES = """\
encoder = onnxruntime.InferenceSession("encoder.onnx")
states = encoder.run(None, {{{feed}}})[0]
"""
GIVEN_STATES = "states = np.zeros((1, 5, {width}), np.float32)  # from an encoder\n"
CROSS_ATTENTION = """\
cross = onnxruntime.InferenceSession("cross.onnx")
seen = dict(zip([o.name for o in cross.get_outputs()], cross.run(None, {"encoder_hidden_states": states})))
seen["encoder_attention_mask"] = np.ones(states.shape[:2], np.int64)
"""
PROOF = """\
## Parity

These files compared with the model on NumPy, on random inputs (parity.json): the relative difference in L2, and the
largest difference divided by the root mean square.

| output | relative L2 | largest |
|---|---|---|"""
Outputs = Mapping[str, Mapping[str, float]]
LENGTHS = {"B": 1, "C": 1, "T": 3, "Y": 224, "X": 224, "M": 5}
KINDS = {"int64": "np.int64", "float32": "np.float32", "bool": "bool"}


class GraphFile(NamedTuple):
    """A graph of an export.  file: its name without the suffix.  method: of the model, which the graph computes."""

    file: str
    method: str
    traced: Traced


def card(name: str, graphs: Sequence[GraphFile], precision: str, folder: Path, outputs: Outputs) -> str:
    """The text of README.md, in Markdown.  outputs: the figures of `proof`."""
    version = sys.modules[__name__.partition(".")[0]].__version__
    parts = [HEAD.format(name=name, version=version, precision=precision, code=_code(graphs))]
    parts += [_table(f"{one.file}.onnx", one.traced.signature) for one in graphs]
    rows = [f"| `{n}` | {f['relative_l2']:.1e} | {f['largest_of_scale']:.1e} |" for n, f in outputs.items()]
    parts.append("\n".join([PROOF, *rows, ""]))
    if (folder / "preprocessor_config.json").is_file():
        parts.append(
            "preprocessor_config.json says how images become pixel values; channels come before height and width.\n"
        )
    return "\n".join(parts)


def _code(graphs: Sequence[GraphFile]) -> str:
    of = {one.file: one.traced.signature for one in graphs}
    if not any(one.name.startswith(PAST_KEYS) for one in of["model"].inputs):
        return ONE_CALL.format(file="model.onnx", feed="\n".join(f"    {line}," for line in _feed(of["model"])))
    before = ""
    if "cross" in of:
        width = of["cross"].inputs[0].dims[-1]
        given = GIVEN_STATES.format(width=width)
        before = STATES.format(feed=", ".join(_feed(of["encoder"]))) if "encoder" in of else given
        before += CROSS_ATTENTION + "\n"
    return STEPS.format(before=before, past=PAST_KEYS, more=", **seen" if "cross" in of else "")


def _feed(signature: Signature) -> list[str]:
    """The inputs of the example: values that any model accepts."""
    found = []
    for one in signature.inputs:
        shape = ", ".join(str(n if isinstance(n, int) else LENGTHS.get(n, 1)) for n in one.dims)
        kind = KINDS[one.dtype]
        made = f"np.ones(({shape}), {kind})" if one.fill or one.name == "input_ids" else f"np.zeros(({shape}), {kind})"
        found.append(f'"{one.name}": {made}')
    return found


def _table(file: str, signature: Signature) -> str:
    """The inputs, outputs and guards of a graph; the arrays that every layer has are in one row."""
    rows = [f"## {file}", "", "| | name | shape | type |", "|---|---|---|---|"]
    for side, of in (("in", signature.inputs), ("out", signature.outputs)):
        listed = set()
        for one in of:
            prefix, _, rest = one.name.partition(".")
            name = f"{prefix}.I.{rest.rpartition('.')[2]}" if prefix in (PAST_KEYS, CROSS_KEYS, "present") else one.name
            if name not in listed:
                listed.add(name)
                rows.append(f"| {side} | `{name}` | ({', '.join(map(str, one.dims))}) | {one.dtype} |")
    if signature.guards:
        rows += [
            "",
            "The graph is valid for inputs with " + ", ".join(f"`{guard}`" for guard in signature.guards) + ".",
        ]
    return "\n".join([*rows, ""])
