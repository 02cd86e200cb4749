"""OWLv2: https://arxiv.org/abs/2306.09683"""

from .config import *
from .model import *
