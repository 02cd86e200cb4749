"""RoBERTa: https://arxiv.org/abs/1907.11692, and XLM-R: https://arxiv.org/abs/1911.02116"""

from ...registry import borrowed_classes
from .config import *
from .model import *

__getattr__ = borrowed_classes(__name__)
