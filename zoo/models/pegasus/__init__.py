"""Pegasus: https://arxiv.org/abs/1912.08777"""

from .config import *
from .model import *
