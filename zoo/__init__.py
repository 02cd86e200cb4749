"""zoo: Hugging Face checkpoints on NumPy or on a GPU, one readable file per model family, compared with transformers.

Start with `zoo.load(name)`.  Importing zoo loads NumPy and nothing heavier.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import ZooError

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Unpack

    from .apps.markup import read_document
    from .apps.tables import TableExtractor, extract_tables
    from .keywords import FindOptions, LoadOptions, ModelOptions
    from .pretrained import Pretrained
    from .tasks.base import Task

    Name = str | os.PathLike[str]

__version__ = "0.1.0"
__all__ = [
    "TableExtractor",
    "ZooError",
    "__version__",
    "export",
    "extract_tables",
    "get_num_threads",
    "load",
    "load_model",
    "read_document",
    "save",
    "set_num_threads",
]


def load(name_or_folder: Name, *, task: str | None = None, **options: Unpack[LoadOptions]) -> Any:
    """Load a checkpoint from the Hugging Face Hub or a local folder as a task, to be called with texts or images.

    "stories260k" comes with zoo: a small model that writes stories and needs no network.

    task: for texts "embed", "sparse-embed", "multi-vector-embed", "fill-mask", "classify", "tag", "answer", "rerank",
    "generate", "text2text-generation", "summarization", "translation" or "zero-shot-classification", for images
    "embed", "classify", "segment", "detect", "depth", "keypoint-detection", "mask-generation", "read", "ocr",
    "zero-shot-image-classification" or "zero-shot-object-detection", for recordings "automatic-speech-recognition" or
    "audio-classification"; by default the task that the checkpoint was trained for.
    With a literal task, type checkers know the return type.
    device: None or "cpu" runs on NumPy, without torch; "auto" on the fastest of CUDA, ONNX Runtime and NumPy that is
    installed, or on what ZOO_DEVICE in the environment names; "onnx", "onnx:cuda", "onnx:coreml", ... on ONNX Runtime;
    "openvino" on OpenVINO; "cuda", "cuda:1", "torch:cpu" on torch.
    dtype: "float32" or "float64"; on torch also "float16" and "bfloat16", by default the file's own; on OpenVINO these
    where the processor has them, by default "float32".  For files with packed matrices (GGUF, ...) the 16-bit types
    concern only the activations.
    weights: "int8" or "int4" quantises the matrices while they are loaded, to a quarter or a seventh of float32's
    memory (docs/quantised.md has the cost).  Checkpoints saved quantised need no option.
    revision: a branch, tag or commit of the repository.  local_files_only: never use the network.
    cache_dir, token: as in huggingface_hub, whose environment variables (HF_HOME, HF_TOKEN, HF_ENDPOINT,
    HF_HUB_OFFLINE, ...) apply too.
    lock: a file written by `zoo lock`.  The hashes of all files are compared first, and any difference is a LockError.
    `.report.fingerprint` is then one digest of all files.
    mmproj: beside a GGUF file, the one that reads images for it, where that is not called mmproj-NAME.gguf.
    graphs: True or False launches the model's kernels with or without CUDA graphs; by default with, on a GPU.
    strict: tensors that no part of the model uses are an error, not a warning.
    trainable: on torch, gradients for `.model.parameters()`, in float32 unless dtype is given.  The task itself always
    computes without dropout and gradients: see docs/finetuning.md.
    new_head: tensors of the task's head that are missing, or have another shape, are drawn at random from `seed`.
    num_labels, or id2label with the labels' names: number of labels; creates a new head if it differs.
    adapter: a folder with a LoRA adapter in the format of the package peft, which is added to the weights as they are
    read.

    The result has `.model`, `.config`, `.tokenizer` or, for images, `.processor`, and `.report` (the tensors that were
    renamed, tied, left unused).
    """
    from .tasks import load_task

    return load_task(name_or_folder, task, **options)


def load_model(name_or_folder: Name, *, head: str | None = None, **options: Unpack[ModelOptions]) -> Pretrained:
    """Load a checkpoint as a bare model, without its task: see `zoo.loading.load_model` for the options."""
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
    **options: Unpack[FindOptions],
) -> Path:
    """Write a checkpoint's model as ONNX graphs, with its tokenizer or processor and a README on how to run them.

    name_or_task: a name or a folder as for `load`, or a loaded task or model.  task: as for `load`, to choose the head.
    precision: "float32", or for encoders "int8".  standard: only operators of the ONNX standard, for other runtimes.
    web: also write a page, index.html, that runs the model in the browser.  Its JavaScript libraries come from the npm
    registry, or from the folder given here, in the form that `npm pack` writes.

    `zoo.load(folder, device="onnx")` runs the result.  A folder with files of another checkpoint that would remain
    next to the new ones is refused (ZooError).
    """
    from .apps.onnx_export.export import export

    return export(name_or_task, folder, task=task, precision=precision, standard=standard, web=web, **options)


def save(model_or_task: Pretrained | Task, folder: str | os.PathLike[str], *, dtype: str | None = None) -> Path:
    """Write a model, or a task with its tokenizer, as a checkpoint that zoo and transformers load.

    dtype: "float32", "float16" or "bfloat16"; by default each tensor's own.  A folder with files of another checkpoint
    that would remain next to the new ones is refused (ZooError); nothing is deleted.
    """
    from .pretrained import Pretrained
    from .saving import save_model

    if isinstance(model_or_task, Pretrained):
        return save_model(model_or_task, folder, dtype=dtype)
    return model_or_task.save(folder, dtype=dtype)


def set_num_threads(n: int | None) -> None:
    """Set the number of threads of NumPy in this process, 1 to 1024; None: as many as the process may use.

    torch has its own threads, and `torch.set_num_threads`.
    """
    from .ops.on_numpy import threads

    threads.set_count(n)


def get_num_threads() -> int:
    """Return the number of threads that an op on NumPy may use.

    The number is the one given to `set_num_threads`, or else the most that OMP_NUM_THREADS, the CPUs of the process and
    its cgroup's quota allow, at most the number that the BLAS is set to, and 1 if NumPy's BLAS cannot change its own.
    """
    from .ops.on_numpy import threads

    return threads.count()


def __getattr__(name: str) -> Any:
    """Import what reads documents when it is first used; say what other names are here."""
    if name in ("TableExtractor", "extract_tables"):
        from .apps import tables

        return getattr(tables, name)
    if name == "read_document":
        from .apps.markup import read_document

        return read_document
    here, instead = os.path.join(os.path.dirname(__file__), name), ""
    if not (os.path.isdir(here) or os.path.isfile(f"{here}.py")):  # `from zoo import ops` asks for modules, too
        from .peer_names import MODULE_NAMES, instead_of

        instead = instead_of(name, MODULE_NAMES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
