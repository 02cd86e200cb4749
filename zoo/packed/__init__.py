"""Packed: the matrix of a linear layer or an embedding as its file has it, in parts and in any of several kinds."""

from .kinds import KINDS as KINDS
from .kinds import plain as plain
from .matrix import Field as Field
from .matrix import Kind as Kind
from .matrix import Packed as Packed
from .matrix import Rows as Rows
