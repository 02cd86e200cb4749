"""mBART: https://arxiv.org/abs/2001.08210"""

from .config import *
from .model import *
