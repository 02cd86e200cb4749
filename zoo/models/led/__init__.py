"""LED, the Longformer Encoder-Decoder: https://arxiv.org/abs/2004.05150"""

from .config import *
from .model import *
