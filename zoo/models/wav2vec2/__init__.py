"""wav2vec 2.0: https://arxiv.org/abs/2006.11477"""

from .config import *
from .model import *
