"""UniSpeech-SAT: https://arxiv.org/abs/2110.05752"""

from .config import *
from .model import *
