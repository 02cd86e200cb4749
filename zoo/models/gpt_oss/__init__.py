"""gpt-oss: https://arxiv.org/abs/2508.10925"""

from .config import *
from .model import *
