"""Wav2Vec2-BERT: https://arxiv.org/abs/2312.05187"""

from .config import *
from .model import *
