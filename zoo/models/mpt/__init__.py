"""MPT: https://www.databricks.com/blog/mpt-7b"""

from .config import *
from .model import *
