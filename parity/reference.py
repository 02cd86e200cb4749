"""What transformers makes of a checkpoint and of a text or picture: the one file that imports it, and torch with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from zoo.errors import ZooError
from zoo.json_file import read_json

from .taps import numbered

# model_type -> where in the bare model the embeddings and the list of layers are, and what the layers are called here
PLACES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), ("embeddings", "encoder.layer")),
    **dict.fromkeys(("vit", "deit", "beit"), ("embeddings", "layers")),
}

NOT_COMPARED = ("loss", "hidden_states", "attentions", "past_key_values", "cross_attentions")
SMALL = 10**7  # parameters


class BadReferenceError(ZooError):
    """The reference is not installed, or cannot be trusted with this checkpoint."""


def require() -> None:
    """Import the reference, or say in one line how to install it."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as e:
        raise BadReferenceError(f"the reference is not installed ({e.name}): pip install 'zoo[parity]'") from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def versions() -> dict[str, str | None]:
    """The versions of what the reference is made of; None for what is not installed."""
    found: dict[str, str | None] = {}
    for name in ("torch", "transformers", "tokenizers", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


class Reference:
    """A checkpoint's folder as transformers reads it: float32, eager attention, evaluation mode, on the CPU."""

    def __init__(self, folder: Path, architecture: str):
        require()
        import torch
        import transformers

        self.folder, self.architecture, self.torch = folder, architecture, torch
        self.config = read_json(folder / "config.json")
        cls = getattr(transformers, architecture, None)
        if cls is None:
            raise BadReferenceError(f"transformers {transformers.__version__} has no {architecture}")
        # Eager, since rows without keys differ by back end, and float32, since version 5 keeps the file's element type.
        try:
            self.model, info = cls.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation="eager",
                local_files_only=True,
                output_loading_info=True,
            )
        except Exception as e:
            raise BadReferenceError(
                f"transformers cannot load {folder} as {architecture}: {type(e).__name__}: {e}"
            ) from e
        self.model.eval()
        self.heard = _heard(self.model.config, architecture)
        # Where layers are tiny, threads only wait for each other, and long where other work wants the cores too.
        small = self.model.num_parameters() < SMALL
        self.threads = 1 if small else torch.get_num_threads()
        # Whatever the file lacks is drawn at random, and only logged.  Nothing can agree with that, so it is refused,
        # but for the pooler of a bare model, whose stage is left out.
        missing = set(info["missing_keys"])
        self.has_pooler = not any("pooler." in name for name in missing)
        missing = {name for name in missing if "pooler." not in name}
        if missing or info["mismatched_keys"]:
            names = ", ".join(map(str, (sorted(missing) or sorted(info["mismatched_keys"]))[:5]))
            raise BadReferenceError(f"transformers finds no {names} in {folder}, and would compute with random numbers")

    def ids(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[list[int]]:
        """The ids of each text, or pair of texts, cut to max_length tokens and not padded."""
        if not hasattr(self, "_tokenizer"):
            self._tokenizer = self._load_tokenizer()
        encoded = self._tokenizer(list(texts), pairs and list(pairs), truncation=True, max_length=max_length)
        return encoded["input_ids"]

    def pixels(self, pictures: Sequence[Any]) -> np.ndarray:
        """The pixel values (B, Y, X, C) of Pillow's pictures, which must be RGB."""
        values = self._processor()(images=list(pictures), return_tensors="np")["pixel_values"]
        return np.moveaxis(values, 1, -1)

    def masks(self, logits: np.ndarray, sizes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """Of each picture of a size (Y, X), the label of every pixel, from logits (B, y, x, L)."""
        output = SimpleNamespace(logits=self.torch.from_numpy(np.moveaxis(logits, -1, 1).copy()))
        found = self._processor().post_process_semantic_segmentation(output, list(sizes))
        return [labels.numpy() for labels in found]

    def stages(self, arrays: Mapping[str, np.ndarray], switches: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Every stage's output, by name and in order: embeddings, layer.0, ..., and the fields of the output.

        Pictures are (B, Y, X, C) here, in arrays and outputs.
        """
        torch, found = self.torch, {}

        def keep(name: str) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                found[name] = _numpy(output[0] if isinstance(output, tuple) else output)

            return hook

        embeddings, layers = PLACES[self.config["model_type"]]
        body = self.model.base_model
        hooks = [body.get_submodule(embeddings).register_forward_hook(keep("embeddings"))]
        for i, layer in enumerate(body.get_submodule(layers)[: self.heard]):
            hooks.append(layer.register_forward_hook(keep(f"layer.{i}")))
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.no_grad():
                options: dict[str, Any] = {name: torch.from_numpy(_writable(array)) for name, array in arrays.items()}
                if "pixel_values" in options:
                    options["pixel_values"] = options["pixel_values"].permute(0, 3, 1, 2)
                options |= dict.fromkeys(switches, True)
                output = self.model(**options, **({"use_cache": False} if self.config.get("is_decoder") else {}))
        finally:
            torch.set_num_threads(before)
            for hook in hooks:
                hook.remove()
        fields = {name: output[name] for name in output if name not in NOT_COMPARED and output[name] is not None}
        if not self.has_pooler:
            fields.pop("pooler_output", None)
        if "pixel_values" not in arrays:
            return found | numbered(fields, _numpy)
        return found | numbered(fields, lambda value: _numpy(value.movedim(1, -1) if value.ndim == 4 else value))

    def _processor(self) -> Any:
        from transformers import AutoImageProcessor

        return AutoImageProcessor.from_pretrained(self.folder, local_files_only=True, backend="pil")

    def _load_tokenizer(self) -> Any:
        import transformers

        more = {}
        if (self.folder / "merges.txt").exists() and not any(
            (self.folder / name).exists() for name in ("tokenizer.json", "special_tokens_map.json")
        ):
            # From these two files alone version 5 makes a <mask> that does not take the space before it, unlike version
            # 4 and every repository that has a tokenizer.json.
            more["mask_token"] = transformers.AddedToken("<mask>", lstrip=True, special=True, normalized=False)
        return transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True, **more)


def _heard(config: Any, architecture: str) -> int:
    """How many layers have a part in what comes out: zoo does not compute the others."""
    if architecture == "BeitForSemanticSegmentation":  # its head reads what goes into the layers of out_indices
        return max(config.out_indices) - 1
    return max(config.out_indices) if architecture == "BeitBackbone" else config.num_hidden_layers


def _numpy(tensor: Any) -> np.ndarray:
    return tensor.detach().float().cpu().numpy().copy()


def _writable(array: np.ndarray) -> np.ndarray:
    """torch takes no bool as an id, and warns of read-only memory."""
    return np.array(array, np.float32 if array.dtype.kind == "f" else np.int64)
