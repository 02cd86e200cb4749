"""SLANet, the structure of a table as tokens of HTML: https://arxiv.org/abs/2210.05391"""

from .config import *
from .model import *
