"""Jina embeddings v3: https://arxiv.org/abs/2409.10173"""

from .config import *
from .model import *
