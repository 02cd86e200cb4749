"""CodeGen: https://arxiv.org/abs/2203.13474"""

from .config import *
from .model import *
