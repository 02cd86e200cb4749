"""Granite: https://www.ibm.com/granite/docs/models/granite"""

from .config import *
from .model import *
