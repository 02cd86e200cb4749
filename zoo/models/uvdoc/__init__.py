"""UVDoc: https://arxiv.org/abs/2302.02887"""

from .config import *
from .model import *
