"""OWL-ViT: https://arxiv.org/abs/2205.06230"""

from .config import *
from .model import *
