"""Documents: files of one or many pages; a page is an image and, in a PDF with a text layer, its words."""

from pathlib import Path

from .files import Document, Page, open_document
from .rules import Rule, Rules
from .selection import Pages, Selection, select
from .word import Word

# The picture of a page that comes with zoo.
EXAMPLE = Path(__file__).parents[2] / "data" / "page.png"

__all__ = [
    "EXAMPLE",
    "Document",
    "Page",
    "Pages",
    "Rule",
    "Rules",
    "Selection",
    "Word",
    "open_document",
    "select",
]
