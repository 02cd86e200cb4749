"""GPT-J: https://github.com/kingoflolz/mesh-transformer-jax"""

from .config import *
from .model import *
