"""zoo: Transformer models that run on NumPy or on a GPU from one readable file each, proven against transformers.

`zoo.load(name)` is the front door.  Importing zoo loads NumPy and nothing heavier.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from .errors import ZooError

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Unpack

    from .apps.tables import TableExtractor
    from .options import LoadOptions
    from .pretrained import Pretrained
    from .tasks.answer import Answer
    from .tasks.base import Task
    from .tasks.classify import Classify
    from .tasks.detect import Detect
    from .tasks.embed import Embed
    from .tasks.fill_mask import FillMask
    from .tasks.generate import Generate
    from .tasks.image_classify import ImageClassify
    from .tasks.image_embed import ImageEmbed
    from .tasks.read import Read
    from .tasks.rerank import Rerank
    from .tasks.segment import Segment
    from .tasks.tag import Tag

    Name = str | os.PathLike[str]
    _Classify = Classify | ImageClassify

__version__ = "0.1.0"
__all__ = [
    "TableExtractor",
    "ZooError",
    "__version__",
    "export",
    "get_num_threads",
    "load",
    "load_model",
    "save",
    "set_num_threads",
]


@overload
def load(name_or_folder: Name, *, task: Literal["embed"], **options: Unpack[LoadOptions]) -> Embed | ImageEmbed: ...
@overload
def load(
    name_or_folder: Name, *, task: Literal["classify"], **options: Unpack[LoadOptions]
) -> Classify | ImageClassify: ...
@overload
def load(name_or_folder: Name, *, task: Literal["fill-mask"], **options: Unpack[LoadOptions]) -> FillMask: ...
@overload
def load(name_or_folder: Name, *, task: Literal["tag"], **options: Unpack[LoadOptions]) -> Tag: ...
@overload
def load(name_or_folder: Name, *, task: Literal["answer"], **options: Unpack[LoadOptions]) -> Answer: ...
@overload
def load(name_or_folder: Name, *, task: Literal["rerank"], **options: Unpack[LoadOptions]) -> Rerank: ...
@overload
def load(name_or_folder: Name, *, task: Literal["generate"], **options: Unpack[LoadOptions]) -> Generate: ...
@overload
def load(name_or_folder: Name, *, task: Literal["segment"], **options: Unpack[LoadOptions]) -> Segment: ...
@overload
def load(name_or_folder: Name, *, task: Literal["detect"], **options: Unpack[LoadOptions]) -> Detect: ...
@overload
def load(name_or_folder: Name, *, task: Literal["read"], **options: Unpack[LoadOptions]) -> Read: ...
@overload
def load(name_or_folder: Name, *, task: str | None = None, **options: Unpack[LoadOptions]) -> Any: ...
def load(name_or_folder: Name, *, task: str | None = None, **options: Unpack[LoadOptions]) -> Any:
    """A checkpoint of the Hugging Face hub, or of a local folder, ready to be called with texts or with images.

    "stories260k" comes with zoo: a small model that writes stories, with which no network is needed.

    task: for texts "embed", "fill-mask", "classify", "tag", "answer", "rerank" or "generate", for images "embed",
    "classify", "segment", "detect" or "read"; by default what the checkpoint was trained for.  Named, it also tells a
    type checker what comes back.
    device: None or "cpu" runs on NumPy, without torch; "onnx", "onnx:cuda", "onnx:coreml", ... by ONNX Runtime; "cuda",
    "cuda:1", "torch:cpu" on torch.
    dtype: "float32" or "float64"; on torch also "float16" and "bfloat16", and the default is the file's own.
    Of files with packed matrices (GGUF's, ...) the 16 bits are those of activations alone.
    weights: "int8" or "int4" quantises the matrices while they are loaded: a quarter or a seventh of float32's memory,
    rounded (docs/quantised.md says what that costs).  A checkpoint that was saved so needs no word of it.
    revision: a branch, tag or commit of the repository.  local_files_only: never use the network.
    cache_dir, token: as in huggingface_hub, whose environment variables (HF_HOME, HF_TOKEN, HF_ENDPOINT,
    HF_HUB_OFFLINE, ...) hold too.
    lock: a file that `zoo lock` wrote.  Exactly the files that it names are loaded, or none (LockError): their hashes
    are compared first.  `.report.fingerprint` is then one digest of them all.
    graphs: whether CUDA graphs launch the model's kernels; by default on a GPU.
    trainable: on torch, gradients for `.model.parameters()`, in float32 unless dtype says otherwise.  The task itself
    always computes as it is used, without dropout and gradients: see docs/finetuning.md.
    new_head: what the checkpoint lacks of the task's head, or has in another shape, is drawn at random from `seed`.
    adapter: a folder with a LoRA adapter as the package peft saves it, which is added to the weights as they are read.
    num_labels, or id2label with the labels' names: as many the head shall have; a new one if need be.

    The result has `.model`, `.config`, `.tokenizer` or, for images, `.processor`, and `.report` (what was renamed,
    tied, left unused).
    """
    from .tasks import load_task

    return load_task(name_or_folder, task, **options)


def load_model(name_or_folder: Name, *, head: str | None = None, **options: Unpack[LoadOptions]) -> Pretrained:
    """The bare model of a checkpoint: see `zoo.loading.load_model` for the options."""
    from .loading import load_model

    return load_model(name_or_folder, head=head, **options)


def export(
    name_or_task: Name | Task | Pretrained,
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    precision: str = "float32",
    standard: bool = False,
    web: bool | str | os.PathLike[str] = False,
    **options: Unpack[LoadOptions],
) -> Path:
    """Write ONNX graphs of a checkpoint's model, with what prepares its input and a README that says how to run them.

    name_or_task: a name or a folder as for `load`, or what was loaded.  task: as for `load`: which head is exported.
    precision: "float32", or of encoders "int8".  standard: operators of the ONNX standard alone, for other runtimes.
    web: a page too, index.html, that runs the model in the browser; its JavaScript libraries come from the npm
    registry, or from the folder that is given here, as `npm pack` writes them.

    `zoo.load(folder, device="onnx")` runs what was written.  A folder with files of another checkpoint that would stay
    beside the new ones is refused (ZooError).
    """
    from .apps.onnx_export.export import export

    return export(name_or_task, folder, task=task, precision=precision, standard=standard, web=web, **options)


def save(model_or_task: Pretrained | Task, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write a model, or a task with its tokenizer, as a checkpoint that zoo and transformers load.

    dtype: "float32", "float16" or "bfloat16"; by default each tensor's own.  A folder with files of another checkpoint
    that would stay beside the new ones is refused (ZooError): nothing is deleted.
    """
    from .pretrained import Pretrained
    from .saving import save_model

    if isinstance(model_or_task, Pretrained):
        return save_model(model_or_task, folder, dtype=dtype)
    return model_or_task.save(folder, dtype=dtype)


def set_num_threads(n: int | None) -> None:
    """Compute with n threads on the CPU from now on, 1 to 1024, in the whole process; None: as many as it may use.

    These are NumPy's.  torch has its own, and `torch.set_num_threads` for them.
    """
    from .ops.on_numpy import threads

    threads.set_count(n)


def get_num_threads() -> int:
    """How many threads an op on NumPy may use.

    As many as `set_num_threads` said; else what OMP_NUM_THREADS, the CPUs that the process may use and its cgroup's
    quota allow, and no more than the BLAS is set to; 1 where NumPy's BLAS has no switch for its own threads.
    """
    from .ops.on_numpy import threads

    return threads.count()


def __getattr__(name: str) -> Any:
    """`zoo.TableExtractor`, imported when it is first used."""
    if name == "TableExtractor":
        from .apps.tables import TableExtractor

        return TableExtractor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
