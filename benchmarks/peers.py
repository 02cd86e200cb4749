"""The libraries that zoo is compared with on texts and images, on the same weights."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

# input_ids and attention_mask (B, T), or the same images with channels last (B, Y, X, C) and first (B, C, Y, X)
# -> states (B, T, D)
Encoder = Callable[[np.ndarray, np.ndarray], np.ndarray]
Embedder = Callable[[list[str]], np.ndarray]  # N texts -> unit vectors (N, D)
Preprocessor = Callable[[bytes], np.ndarray]  # an encoded image -> (1, Y, X, C)


def encoders(folder: Path, threads: int) -> dict[str, Encoder]:
    """zoo, transformers (sdpa) and, if it is installed, ONNX Runtime (not for BEiT), on one checkpoint."""
    import zoo

    ours: Any = zoo.load_model(folder)
    kind = _model_type(folder)
    first = slice(1) if kind in ("vit", "beit") else slice(2)
    out: dict[str, Encoder] = {
        "zoo": lambda *inputs: ours(*inputs[first]).last_hidden_state,
        "transformers": transformers_encoder(folder, threads),
    }
    if kind != "beit" and importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        out["onnxruntime"] = onnx_encoder(exported(folder), threads)
    return out


def transformers_encoder(folder: Path, threads: int) -> Encoder:
    import torch

    torch.set_num_threads(threads)
    model = torch_model(folder)
    last = slice(1, 2) if _model_type(folder) in ("vit", "beit") else slice(2)

    def states(*inputs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(*map(torch.from_numpy, inputs[last])).last_hidden_state.numpy()

    return states


def embedders(folder: Path, batch: int = 32) -> dict[str, Embedder]:
    """From texts to vectors: zoo's task, transformers in its model card's loop, sentence-transformers if installed.

    transformers takes batches in the order of the texts, each padded to its longest; zoo and sentence-transformers
    sort by length themselves.
    """
    import zoo

    task: Any = zoo.load(folder, task="embed")
    out: dict[str, Embedder] = {"zoo": task, "transformers": _mean_pooled(folder, batch)}
    if importlib.util.find_spec("sentence_transformers"):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu")
        out["sentence-transformers"] = lambda texts: np.asarray(
            model.encode(texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
        )
    return out


def preprocessors(config: dict[str, Any]) -> dict[str, Preprocessor]:
    """zoo and transformers' Pillow backend, by the content of a preprocessor_config.json."""
    import transformers
    from PIL import Image

    from zoo.images import ImageProcessor

    ours = ImageProcessor.from_dict(config)
    theirs = getattr(transformers, config["image_processor_type"] + "Pil").from_dict(dict(config))

    def prepare(data: bytes) -> np.ndarray:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return np.moveaxis(theirs(images=image, return_tensors="np")["pixel_values"], 1, -1)

    return {"zoo": lambda data: ours(data).pixel_values, "transformers": prepare}


def torch_model(folder: Path) -> Any:
    import torch
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, dtype=torch.float32).eval()


def _model_type(folder: Path) -> str:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]


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


# ONNX Runtime, on graphs that torch.onnx writes


def onnx_session(path: Path, threads: int) -> Any:
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnx_encoder(path: Path, threads: int) -> Encoder:
    """The graph of `exported`.  Of images it takes the array with channels first, which is the last one."""
    session = onnx_session(path, threads)
    names = [one.name for one in session.get_inputs()]
    return lambda *inputs: np.asarray(session.run(None, dict(zip(names, inputs[-len(names) :], strict=True)))[0])


def exported(folder: Path) -> Path:
    """The checkpoint as an ONNX graph, beside its weights, with a free batch (and length)."""
    path = folder / "model.onnx"
    if path.is_file():
        return path
    import torch

    model = torch_model(folder)
    if _model_type(folder) in ("vit", "beit"):
        size = model.config.image_size
        pixels = {"pixel_values": torch.zeros(2, 3, size, size)}
        return export(path, lambda pixels: model(pixels).last_hidden_state, model, pixels, {0: "B"})

    def states(input_ids: Any, attention_mask: Any) -> Any:
        # A mask of four dimensions is taken as it is: the code that makes one of two cannot be exported.
        if _model_type(folder) == "mpnet":
            return model(input_ids, attention_mask).last_hidden_state  # whose older code can be
        bias = (1 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        return model(input_ids, bias).last_hidden_state

    ids = torch.arange(5, 37).reshape(2, 16)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return export(path, states, model, inputs, {0: "B", 1: "T"})


def export(
    path: Path, call: Callable[..., Any], model: Any, inputs: Mapping[str, Any], free: Mapping[int, str]
) -> Path:
    """Write `call`, which runs the model, as an ONNX graph -> `path`.

    inputs: an example of each argument.  free: the axes that may have any size.
    """
    import torch

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return call(*inputs)

    partial = path.with_suffix(".part")
    with _quiet():
        torch.onnx.export(
            Exported().eval(),
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
