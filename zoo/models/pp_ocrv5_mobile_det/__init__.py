"""PP-OCRv5's small detector of text: https://arxiv.org/abs/2507.05595"""

from .config import *
from .model import *
