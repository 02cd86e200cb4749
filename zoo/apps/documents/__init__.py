"""Documents: files of one or many pages, each an image and, where the file knows them, its words."""

from .files import Document, Page, open_document
from .selection import Selection, select

__all__ = ["Document", "Page", "Selection", "open_document", "select"]
