"""StableLM 2: https://arxiv.org/abs/2402.17834"""

from .config import *
from .model import *
