"""PaliGemma: https://arxiv.org/abs/2407.07726"""

from .config import *
from .model import *
