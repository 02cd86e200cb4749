"""Tables of pages as a model of images and texts writes them, for `zoo table --model`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...checkpoint.names import as_name
from ...hub import find
from ...tasks.image_text import ImageText
from ..batch.files import folder_digest
from ..documents import Rules
from ..tables import Table, Word
from ..tables.batch import ExtractorConfig
from .reading import load_reader, read_page
from .table_words import fit_table, with_words

NO_CELLS = "the model wrote a table without cells, which is left out"


class ModelExtractor:
    """Extracts the tables of upright pages by the answers of a model, as `TableExtractor` does by finding them.

    A model that writes no places (Markdown) gives tables the whole page as their place, and the places of their words.
    """

    def __init__(self, model: ImageText, straighten: bool = True):
        self.model, self.straighten = model, straighten

    def upright_tables(
        self, page: np.ndarray, words: Sequence[Word] | None, rules: Rules | None, notes: list[str]
    ) -> list[Table]:
        """The tables of the pixels of a page (H, W, 3); what the answer was damaged by is added to the notes.

        words: of the page, with which the cells are compared (`with_words`).
        """
        found = read_page(self.model, page)
        notes += found.doubts
        height, width = page.shape[:2]
        tables = []
        for block in found.blocks:
            if block.table is None:
                continue
            if not block.table.cells:
                notes.append(NO_CELLS)
                continue
            x0, y0, x1, y1 = block.box or (0.0, 0.0, 1.0, 1.0)
            table = fit_table(block.table, (x0 * width, y0 * height, x1 * width, y1 * height))
            tables.append(table if words is None else with_words(table, words, block.box is not None))
        return tables


@dataclass(frozen=True)
class ModelExtractorConfig(ExtractorConfig):
    """The options of a `ModelExtractor` whose model is named, and of `open_document`."""

    model: str = ""

    def extractor(self) -> Any:
        options = {name: getattr(self, name) for name in ("device", "local_files_only", "lock")}
        return ModelExtractor(load_reader(self.model, **options), self.straighten)

    def key(self) -> str:
        local = as_name(self.model).is_local
        return hashlib.sha256(f"{super().key()}{folder_digest(find(self.model)) if local else ''}".encode()).hexdigest()
