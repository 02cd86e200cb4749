"""Documents that a model has written as DocTags: their blocks, tables and places, as Markdown, HTML and JSON."""

from .document import Block, Document
from .otsl import table_of_otsl
from .read import read_doctags

__all__ = ["Block", "Document", "read_doctags", "table_of_otsl"]
