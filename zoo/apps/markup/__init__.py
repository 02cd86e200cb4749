"""Documents that a model has written in markup (DocTags, OTSL, Donut's tags, HTML, Markdown): their blocks, tables and
places, as Markdown, HTML and JSON.
"""

from .doctags import read_doctags
from .document import Block, Document
from .markdown import read_markdown
from .otsl import table_of_otsl
from .reading import read_document, read_markup

__all__ = ["Block", "Document", "read_doctags", "read_document", "read_markdown", "read_markup", "table_of_otsl"]
