"""PP-OCRv5's small reader of lines: https://arxiv.org/abs/2507.05595"""

from .config import *
from .model import *
