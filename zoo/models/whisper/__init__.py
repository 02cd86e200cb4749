"""Whisper: https://arxiv.org/abs/2212.04356"""

from .config import *
from .heads import *
from .model import *
