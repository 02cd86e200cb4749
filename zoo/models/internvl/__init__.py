"""InternVL 3 and 3.5: https://arxiv.org/abs/2504.10479"""

from .config import *
from .model import *
