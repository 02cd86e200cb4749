"""SLANeXt, SLANet's structure head over SAM's encoder: https://huggingface.co/PaddlePaddle/SLANeXt_wired_safetensors"""

from .config import *
from .model import *
