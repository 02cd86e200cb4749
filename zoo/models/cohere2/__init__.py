"""Command R7B: https://cohere.com/blog/command-r7b"""

from .config import *
from .model import *
