"""The inputs of models: a user's arrays are checked once and placed beside the weights, in one record.

A model's `forward` takes that record, with arrays of the right kind, shape and device, and has only the paper's maths.
"""

from .images import ImageInputs, ImageModel
from .texts import ChoiceModel, Context, TextInputs, TextModel

__all__ = ["ChoiceModel", "Context", "ImageInputs", "ImageModel", "TextInputs", "TextModel"]
