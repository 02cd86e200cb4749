"""Audio Spectrogram Transformer: https://arxiv.org/abs/2104.01778"""

from .config import *
from .model import *
