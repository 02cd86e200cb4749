"""GLM-OCR: https://arxiv.org/abs/2603.10910"""

from .config import *
from .model import *
