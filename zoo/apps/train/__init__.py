"""Training on torch, of models that were loaded with `trainable=True`.

`compute_loss` is the loss of a model's head, `Run` a loop that saves, resumes and shares its work among processes,
`Settings` how it goes; `finetune` does all of it for a checkpoint and a file of examples.
"""

from .finetune import finetune
from .loop import Run, Settings, StoppedError, batch_of, has_bfloat16
from .losses import compute_loss

__all__ = ["Run", "Settings", "StoppedError", "batch_of", "compute_loss", "finetune", "has_bfloat16"]
