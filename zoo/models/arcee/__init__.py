"""AFM: https://www.arcee.ai/blog/deep-dive-afm-4-5b-the-first-arcee-foundational-model"""

from .config import *
from .model import *
