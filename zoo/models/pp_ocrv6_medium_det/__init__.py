"""PP-OCRv6's medium detector of text: https://arxiv.org/abs/2507.05595"""

from .config import *
from .model import *
