"""MM-Grounding-DINO: https://arxiv.org/abs/2401.02361"""

from .config import *
from .model import *
