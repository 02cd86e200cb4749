"""Tables in images: their cells, what they are written to, and how well one agrees with another."""

from .as_xlsx import save_xlsx
from .draw import draw_tables
from .extract import TableExtractor, extract_tables
from .joined import extract_document, join_pages
from .structure import build_table
from .table import Cell, Table, Word
from .words import read_words, words_outside

__all__ = [
    "Cell",
    "Table",
    "TableExtractor",
    "Word",
    "build_table",
    "draw_tables",
    "extract_document",
    "extract_tables",
    "join_pages",
    "read_words",
    "save_xlsx",
    "words_outside",
]
