"""QuantTensor: the matrix of a linear layer or an embedding as its file stores it, in one or several QuantTypes."""

from .ggml import FP4_CODES as FP4_CODES
from .ggml import IQ4_CODES as IQ4_CODES
from .kinds import QUANT_TYPES as QUANT_TYPES
from .kinds import float_tensor as float_tensor
from .matrix import Field as Field
from .matrix import QuantRows as QuantRows
from .matrix import QuantTensor as QuantTensor
from .matrix import QuantType as QuantType
