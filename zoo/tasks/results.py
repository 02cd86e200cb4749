"""How the results of tasks are written: as a row of a table, as JSON, as lines for people, as a picture.

A task's class has one of these as `results`.  What several tasks share is here; a task with results of its own kind has
the class in its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

# A cell of a table for people: a text, or a share of 1, which a terminal shows as a bar.
Cell = str | float
Lines = list[tuple[Cell, ...]]

LABEL = {"label": "string", "score": "double"}
SHOWN_VALUES = 4  # numbers of a vector
SHOWN_COSINES = 10  # inputs whose cosines fit on a line


class ResultFormat:
    """The base: results are named tuples, or lists of them.

    columns: of a result in a table, name -> type.  The types have pyarrow's names; [type] is a list, a dictionary a
    struct.  with_top_k: the columns that the option top_k adds.  files: functions that write a result as the text of a
    file, by the file's suffix.
    """

    columns: ClassVar[dict[str, Any]] = {}
    with_top_k: ClassVar[dict[str, Any]] = {}
    files: ClassVar[dict[str, Callable[[Any], str]]] = {}

    def further_columns(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that the options of a call add."""
        return self.with_top_k if options.get("top_k") is not None else {}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        """The result of one input in these columns; top_k: with those of `with_top_k`."""
        return {next(iter(self.columns)): [one._asdict() for one in result]}

    def json(self, result: Any) -> Any:
        """What JSON has of a result."""
        return result

    def lines(self, result: Any) -> Lines | str:
        """A result for people: the rows of a table, or a text."""
        raise NotImplementedError

    def tables(self, inputs: Sequence[str], results: Sequence[Any]) -> Iterator[tuple[str, Lines | str]]:
        """The results of several inputs for people: (title, rows of a table, or a text)."""
        for title, result in zip(inputs, results, strict=True):
            yield title, self.lines(result)

    def picture(self, result: Any) -> Image.Image:
        """The input with the result drawn on it, for tasks whose row says `draws`."""
        raise NotImplementedError


class Labels(ResultFormat):
    """Lists of Label, the best first, which has columns of its own beside that of the list."""

    columns: ClassVar[dict[str, Any]] = {**LABEL, "labels": [LABEL]}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        best = result[0]._asdict() if result else dict.fromkeys(LABEL)
        has_list = top_k or "labels" in self.columns
        return {**best, **({"labels": [one._asdict() for one in result]} if has_list else {})}

    def lines(self, result: Any) -> Lines:
        return [(one.label, f"{one.score:.4f}", one.score) for one in result]


class BestLabel(Labels):
    """The same, with the list in a table only if top_k asks for it."""

    columns: ClassVar[dict[str, Any]] = LABEL
    with_top_k: ClassVar[dict[str, Any]] = {"labels": [LABEL]}


class Texts(ResultFormat):
    """Texts that a model has written."""

    columns: ClassVar[dict[str, Any]] = {"generated": "string"}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        return {"generated": result}

    def lines(self, result: Any) -> str:
        return result


class Vectors(ResultFormat):
    """A vector for each input."""

    columns: ClassVar[dict[str, Any]] = {"embedding": ["float"]}

    def row(self, result: Any, top_k: bool = False) -> dict[str, Any]:
        return {"embedding": result}

    def tables(self, inputs: Sequence[str], results: Sequence[Any]) -> Iterator[tuple[str, Lines | str]]:
        vectors = np.stack(results)
        norms = np.linalg.norm(vectors, axis=1)
        yield (
            f"{vectors.shape[1]} dimensions",
            [
                ("", "norm", "first values", "text"),
                *(
                    (str(i + 1), f"{norm:.4f}", values(vector, SHOWN_VALUES), text)
                    for i, (text, norm, vector) in enumerate(zip(inputs, norms, vectors, strict=True))
                ),
            ],
        )
        if len(inputs) > 1:
            some = (vectors / np.maximum(norms, 1e-12)[:, None])[:SHOWN_COSINES]
            title = "cosines" if len(inputs) <= SHOWN_COSINES else f"cosines of the first {SHOWN_COSINES}"
            names = [str(i + 1) for i in range(len(some))]
            cosines = [(name, *(f"{c:.3f}" for c in row)) for name, row in zip(names, some @ some.T, strict=True)]
            yield title, [("", *names), *cosines]


def values(vector: Iterable[float], count: int) -> str:
    """The first numbers of a vector, aligned."""
    return " ".join(f"{value:7.4f}" for _, value in zip(range(count), vector, strict=False))
