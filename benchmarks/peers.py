"""Those that zoo is compared with on texts, each as a function of the same arguments, on the same weights."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Encoder = Callable[[np.ndarray, np.ndarray], np.ndarray]  # input_ids, attention_mask (B, T) -> states (B, T, D)
Embedder = Callable[[list[str]], np.ndarray]  # N texts -> unit vectors (N, D)


def encoders(folder: Path, threads: int) -> dict[str, Encoder]:
    """zoo, transformers (sdpa) and, if it is installed, ONNX Runtime, on one checkpoint."""
    out = {"zoo": _zoo(folder), "transformers": _transformers(folder)}
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        out["onnxruntime"] = _onnxruntime(folder, threads)
    return out


def embedders(folder: Path, batch: int = 32) -> dict[str, Embedder]:
    """From texts to vectors: zoo's task, transformers in its model card's loop, sentence-transformers if installed.

    transformers takes batches in the order of the texts, each padded to its longest; zoo and sentence-transformers
    sort by length themselves.
    """
    out = {"zoo": _zoo_task(folder), "transformers": _mean_pooled(folder, batch)}
    if importlib.util.find_spec("sentence_transformers"):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu")
        out["sentence-transformers"] = lambda texts: np.asarray(
            model.encode(texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
        )
    return out


def _zoo(folder: Path) -> Encoder:
    import zoo

    model: Any = zoo.load_model(folder)
    return lambda ids, mask: model(ids, mask).last_hidden_state


def _zoo_task(folder: Path) -> Embedder:
    import zoo

    task: Any = zoo.load(folder, task="embed")
    return task


def torch_model(folder: Path) -> Any:
    import torch
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32).eval()


def _transformers(folder: Path) -> Encoder:
    import torch

    model = torch_model(folder)

    def encode(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(torch.from_numpy(ids), torch.from_numpy(mask)).last_hidden_state.numpy()

    return encode


def _mean_pooled(folder: Path, batch: int) -> Embedder:
    import torch
    from transformers import AutoTokenizer

    model, tokenizer = torch_model(folder), AutoTokenizer.from_pretrained(folder)

    def embed(texts: list[str]) -> np.ndarray:
        out = []
        with torch.inference_mode():
            for i in range(0, len(texts), batch):
                rows = tokenizer(
                    texts[i : i + batch], padding=True, truncation=True, max_length=256, return_tensors="pt"
                )
                mask = rows["attention_mask"][..., None]
                mean = (model(**rows).last_hidden_state * mask).sum(1) / mask.sum(1)
                out.append(torch.nn.functional.normalize(mean).numpy())
        return np.concatenate(out)

    return embed


def _onnxruntime(folder: Path, threads: int) -> Encoder:
    session = onnx_session(exported(folder), threads)
    return lambda ids, mask: np.asarray(session.run(None, {"input_ids": ids, "attention_mask": mask})[0])


def onnx_session(path: Path, threads: int) -> Any:
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def exported(folder: Path) -> Path:
    """The checkpoint as an ONNX graph, beside its weights, with free batch and length."""
    path = folder / "model.onnx"
    if path.is_file():
        return path
    import torch

    model = torch_model(folder)
    lowest = torch.finfo(torch.float32).min

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            # A mask of four dimensions is taken as it is: the code that makes one of two cannot be exported.
            bias = (1 - attention_mask[:, None, None, :].float()) * lowest
            return self.model(input_ids, bias).last_hidden_state

    ids = torch.arange(5, 37).reshape(2, 16)
    return export(path, Exported(), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, {0: "B", 1: "T"})


def export(path: Path, module: Any, inputs: dict[str, Any], free: dict[int, str]) -> Path:
    """Write a module as an ONNX graph -> `path`.  inputs: an example of each argument.  free: axes of any size."""
    import torch

    partial = path.with_suffix(".part")
    with _quiet():
        torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            str(partial),
            input_names=list(inputs),
            output_names=["states"],
            dynamic_axes=dict.fromkeys((*inputs, "states"), free),
            opset_version=17,
            dynamo=False,
        )
    partial.rename(path)
    return path


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
