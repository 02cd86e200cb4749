"""Hunyuan's dense models: https://github.com/Tencent-Hunyuan/Hunyuan-7B"""

from .config import *
from .model import *
