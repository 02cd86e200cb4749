"""UniSpeech: https://arxiv.org/abs/2101.07597"""

from .config import *
from .model import *
