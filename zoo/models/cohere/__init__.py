"""Command R: https://cohere.com/blog/command-r"""

from .config import *
from .model import *
