"""GPT-2: https://openai.com/index/better-language-models"""

from .config import *
from .model import *
