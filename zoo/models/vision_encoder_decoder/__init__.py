"""An encoder of images and a decoder, such as TrOCR (https://arxiv.org/abs/2109.10282) and Donut
(https://arxiv.org/abs/2111.15664)
"""

from .config import *
from .model import *
