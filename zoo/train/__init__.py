"""Training on torch, of models that were loaded with `trainable=True`.

`compute_loss` is the loss of a model's head.
"""

from .losses import compute_loss

__all__ = ["compute_loss"]
