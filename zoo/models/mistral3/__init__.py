"""Mistral Small 3.1: https://mistral.ai/news/mistral-small-3-1"""

from .config import *
from .model import *
