"""Table Transformer: https://arxiv.org/abs/2110.00061"""

from .config import TableTransformerConfig
from .model import TableTransformerForObjectDetection, TableTransformerModel

__all__ = ["TableTransformerConfig", "TableTransformerForObjectDetection", "TableTransformerModel"]
