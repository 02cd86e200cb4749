"""Training on torch, for models that are loaded with `trainable=True`.

`compute_loss` is the loss of a model's head; `Run` is a training loop that saves, resumes and uses several processes,
with the hyperparameters in `Settings`; `finetune` trains a checkpoint on a file of examples.
"""

from .finetune import finetune
from .loop import Run, Settings, StoppedError, batch_of, has_bfloat16
from .losses import compute_loss

__all__ = ["Run", "Settings", "StoppedError", "batch_of", "compute_loss", "finetune", "has_bfloat16"]
