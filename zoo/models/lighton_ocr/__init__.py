"""LightOnOCR: https://arxiv.org/abs/2601.14251"""

from .config import *
from .model import *
