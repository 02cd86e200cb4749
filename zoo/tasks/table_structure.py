"""TableStructure: the rows, columns, header and spanning cells of a table, by a model that writes its structure.

Shapes: B images of a batch, Y and X height and width after the processor, H and W before it, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..checkpoint.paddle_table import TABLE_TOKENS
from ..errors import InputError, UnsupportedError
from ..images.boxes import Detection
from ..warning import warn
from .detect import Detect
from .image_task import floats
from .table_tokens import LABELS, borders_of_ink, borders_of_places, find_parts, place_cells, read_tokens

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..typing import Array


class TableStructure(Detect):
    """Images of one table each to the parts of it, as Table Transformer has them.

    >>> structure = zoo.load("slanet")
    >>> structure("table.png")[0]
    Detection(label='table', score=0.9..., box=(...))

    Their borders lie between the places of cells, which the model of PaddleOCR's graph writes beside its tokens, or
    where there is least ink, for a checkpoint of transformers, whose class has no places.
    """

    own_labels: ClassVar[tuple[str, ...]] = LABELS

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        config: Any = checkpoint.config
        if (count := config.out_channels) != len(TABLE_TOKENS):
            known = f"expected the {len(TABLE_TOKENS)} tokens of transformers' processor"
            raise UnsupportedError(f"{checkpoint.name}: out_channels = {count} is not implemented, {known}")
        return super().parts_of(checkpoint)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.own_labels

    def outputs(
        self, pixel_values: Array, sizes: Sequence[tuple[int, int]], pixel_mask: Array | None = None
    ) -> list[Any]:
        out = self.runner(self.model, pixel_values)
        places = [None] * len(sizes) if out.loc_preds is None else floats(out.loc_preds)
        return list(zip(floats(out.last_hidden_state), places, floats(pixel_values), sizes, strict=True))

    def objects(self, output: Any, threshold: float, rule: str) -> tuple[list[Detection], None]:
        """The parts with a score above the threshold; the score is the mean probability of the tokens of its cells."""
        if rule != "score":
            raise InputError(f"rule is {rule!r}, and a model that writes tokens has only 'score'")
        probabilities, places, pixels, (H, W) = output
        for name, values in (("probabilities", probabilities), ("places", places)):
            if values is not None and not np.isfinite(values).all():
                raise InputError(f"the {name} of the tokens are not all finite")
        tokens, is_whole = read_tokens(probabilities)
        if not is_whole:
            warn(f"the structure of a table has no end after {len(probabilities)} tokens: its last rows may be missing")
        cells = place_cells(tokens)
        if not cells:
            return [], None
        if places is not None:
            rows, columns = borders_of_places(cells, places.clip(0, 1) * (W, H, W, H))
        else:
            y, x = (np.flatnonzero(pixels.any((2, axis)))[-1] + 1 for axis in (1, 0))  # without the zeros around it
            rows, columns = borders_of_ink(cells, pixels[:y, :x])
            rows, columns = [v * H / y for v in rows], [v * W / x for v in columns]
        return [one for one in find_parts(cells, rows, columns) if one.score > threshold], None
