"""zoo: Transformer models that run on NumPy or on a GPU from one readable file each, proven against transformers.

`zoo.load(name)` is the front door.  Importing zoo loads NumPy and nothing heavier.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import ZooError

if TYPE_CHECKING:
    from pathlib import Path

    from .pretrained import Pretrained
    from .tasks import Task

__version__ = "0.1.0"
__all__ = ["ZooError", "__version__", "load", "load_model", "save"]


def load(
    name_or_folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    token: str | bool | None = None,
    lock: str | os.PathLike[str] | None = None,
    graphs: bool | None = None,
) -> Task:
    """A checkpoint of the Hugging Face hub, or of a local folder, ready to be called with texts or with images.

    "stories260k" comes with zoo: a small model that writes stories, with which no network is needed.

    task: for texts "embed", "fill-mask", "classify", "tag", "answer", "rerank" or "generate", for images "embed",
    "classify", "segment", "detect" or "read"; by default what the checkpoint was trained for.
    device: None or "cpu" runs on NumPy, without torch; "cuda", "cuda:1", "torch:cpu" on torch.
    dtype: "float32" or "float64"; on torch also "float16" and "bfloat16", and the default is the file's own.
    revision: a branch, tag or commit of the repository.  local_files_only: never use the network.
    cache_dir, token: as in huggingface_hub, whose environment variables (HF_HOME, HF_TOKEN, HF_ENDPOINT,
    HF_HUB_OFFLINE, ...) hold too.
    lock: a file that `zoo lock` wrote.  Exactly the files that it names are loaded, or none (LockError): their hashes
    are compared first.  `.report.fingerprint` is then one digest of them all.
    graphs: whether CUDA graphs launch the model's kernels; by default on a GPU.

    The result has `.model`, `.config`, `.tokenizer` or, for images, `.processor`, and `.report` (what was renamed,
    tied, left unused).
    """
    from .tasks import load_task

    return load_task(
        name_or_folder,
        task=task,
        device=device,
        dtype=dtype,
        revision=revision,
        local_files_only=local_files_only,
        cache_dir=cache_dir,
        token=token,
        lock=lock,
        graphs=graphs,
    )


def load_model(name_or_folder: str | os.PathLike[str], **options: Any) -> Pretrained:
    """The bare model of a checkpoint: see `zoo.checkpoint.load.load_model` for the options."""
    from .checkpoint.load import load_model

    return load_model(name_or_folder, **options)


def save(model_or_task: Pretrained | Task, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write a model, or a task with its tokenizer, as a checkpoint that zoo and transformers load.

    dtype: "float32", "float16" or "bfloat16"; by default each tensor's own.  A folder with files of another checkpoint
    that would stay beside the new ones is refused (ZooError): nothing is deleted.
    """
    from .checkpoint.load import save_model
    from .pretrained import Pretrained

    if isinstance(model_or_task, Pretrained):
        return save_model(model_or_task, folder, dtype=dtype)
    return model_or_task.save(folder, dtype=dtype)
