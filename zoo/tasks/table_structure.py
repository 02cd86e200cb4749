"""TableStructure: the rows, columns, header and spanning cells of a table, by a model that writes its structure.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..images.boxes import Detection
from ..warning import warn
from .detect import Detect
from .image_task import floats
from .table_tokens import LABELS, borders_of_ink, borders_of_places, find_parts, place_cells, read_tokens

if TYPE_CHECKING:
    from ..typing import Array


class TableStructure(Detect):
    """Images of one table each to the parts of it, as Table Transformer has them.

    >>> structure = zoo.load("slanet")
    >>> structure("table.png")[0]
    Detection(label='table', score=0.9..., box=(...))

    Their borders lie between the places of cells, which the model of PaddleOCR's graph writes beside its tokens, or
    where there is least ink, for a checkpoint of transformers, whose class has no places.
    """

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS

    def outputs(
        self, pixel_values: Array, sizes: Sequence[tuple[int, int]], pixel_mask: Array | None = None
    ) -> list[Any]:
        out = self.runner(self.model, pixel_values)
        places = [None] * len(sizes) if out.pred_boxes is None else floats(out.pred_boxes)
        return list(zip(floats(out.last_hidden_state), places, floats(pixel_values), sizes, strict=True))

    def objects(self, output: Any, threshold: float, rule: str) -> list[Detection]:
        """The parts with a score above the threshold; the score is the mean probability of the tokens of its cells."""
        if rule != "score":
            raise InputError(f"rule is {rule!r}, and a model that writes tokens has only 'score'")
        probabilities, places, pixels, (H, W) = output
        tokens, is_whole = read_tokens(probabilities)
        if not is_whole:
            warn(f"the structure of a table has no end after {len(probabilities)} tokens: its last rows may be missing")
        cells = place_cells(tokens)
        if not cells:
            return []
        if places is not None:
            rows, columns = borders_of_places(cells, places.clip(0, 1) * (W, H, W, H))
        else:
            y, x = (np.flatnonzero(pixels.any((2, axis)))[-1] + 1 for axis in (1, 0))  # without the zeros around it
            rows, columns = borders_of_ink(cells, pixels[:y, :x])
            rows, columns = [v * H / y for v in rows], [v * W / x for v in columns]
        return [one for one in find_parts(cells, rows, columns) if one.score > threshold]
