"""The door of every model: what a user passes, checked once and placed beside the weights, in one record.

Behind it a model's `forward` sees arrays of the right kind, shape and device, and holds the paper's maths alone.
"""

from .images import ImageInputs, ImageModel
from .refusal import refuse
from .texts import ChoiceModel, Context, TextInputs, TextModel

__all__ = ["ChoiceModel", "Context", "ImageInputs", "ImageModel", "TextInputs", "TextModel", "refuse"]
