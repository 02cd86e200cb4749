"""Documents: files of one or many pages; a page is an image and, in a PDF with a text layer, its words."""

from .files import Document, Page, open_document
from .rules import Rule, Rules
from .selection import Selection, select
from .word import Word

__all__ = ["Document", "Page", "Rule", "Rules", "Selection", "Word", "open_document", "select"]
