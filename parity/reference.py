"""The reference, transformers, on a checkpoint and a text or image: the one file that imports it, and torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from zoo.engines.onnx.trace import NO_IMAGES
from zoo.errors import ZooError
from zoo.files.folder import CheckpointFolder
from zoo.files.json_file import read_json
from zoo.optional import pip_install
from zoo.registry import FAMILIES

from .modules import PREFIX
from .specs import spec_class
from .specs.common import Loaded, pair
from .taps import number_fields

# Of the last three, caches all, the first is "cache" from version 5.24 on.
NOT_COMPARED = ("loss", "hidden_states", "attentions", "cross_attentions", "past_key_values", "cache", "cache_params")
SMALL_MODEL = 10**7  # parameters


class BadReferenceError(ZooError):
    """The reference is not installed, or cannot be trusted with this checkpoint."""


def require() -> None:
    """Import the reference, or say in one line how to install it."""
    try:
        import torch  # noqa: F401  (which transformers imports late)
        import transformers
    except ImportError as e:
        raise BadReferenceError(f"the reference is not installed ({e.name}): {pip_install('parity')}") from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def versions() -> dict[str, str | None]:
    """The versions of what the reference is made of; None for what is not installed."""
    found: dict[str, str | None] = dict.fromkeys(("torch", "transformers", "tokenizers", "safetensors", "pillow"))
    for name in found:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@contextmanager
def exact_products() -> Iterator[None]:
    """Within the context a GPU multiplies float32 as float32, and not as TF32, which keeps 10 bits of each number."""
    require()
    import torch

    flags: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [flag.allow_tf32 for flag in flags]
    try:
        for flag in flags:
            flag.allow_tf32 = False
        yield
    finally:
        for flag, value in zip(flags, before, strict=True):
            flag.allow_tf32 = value


@contextmanager
def threads_for(parameters: int) -> Iterator[None]:
    """Within the context torch has one thread for a small model, where threads would only wait for each other."""
    import torch

    before = torch.get_num_threads()
    try:
        if parameters < SMALL_MODEL:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)


class Reference:
    """A checkpoint's folder as transformers reads it: eager attention, evaluation mode.

    device: "cpu", "cuda", "cuda:1", ...  dtype: "float32", "float16" or "bfloat16".
    """

    def __init__(self, folder: Path, architecture: str, device: str = "cpu", dtype: str = "float32"):
        require()
        import torch
        import transformers

        self.folder, self.architecture, self.torch = folder, architecture, torch
        raw = CheckpointFolder(folder).json("config.json")
        self.config = {**raw, "architectures": [architecture]}  # that it is read as
        self.device, self.dtype = torch.device(device), getattr(torch, dtype)
        cls = getattr(transformers, architecture, None)
        if cls is None:
            raise BadReferenceError(f"transformers {transformers.__version__} has no {architecture}")
        try:
            self.model, info = self.load(cls)
        except Exception as e:
            raise BadReferenceError(
                f"transformers cannot load {folder} as {architecture}: {type(e).__name__}: {e}"
            ) from e
        self.model.eval().to(self.device)
        self.size = self.model.num_parameters()
        # Whatever the file lacks is drawn at random, and only logged.  Nothing can agree with that, so it is refused,
        # but for the pooler of a bare model, whose stage is left out.
        self.missing, self.strays = set(info["missing_keys"]), set(info["unexpected_keys"])
        self.has_pooler = not any("pooler." in name for name in self.missing)
        missing = {n for n in self.missing if "pooler." not in n and not n.endswith("num_batches_tracked")}
        if missing or info["mismatched_keys"]:
            names = ", ".join(map(str, (sorted(missing) or sorted(info["mismatched_keys"]))[:5]))
            raise BadReferenceError(f"transformers finds no {names} in {folder}, and would compute with random numbers")

    def load(self, cls: Any) -> Loaded:
        """The model of a class with the folder's weights, and what transformers says of their names."""
        return spec_class(self.config["model_type"]).load_reference(cls, self.folder, self.config, self.dtype)

    def ids(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[list[int]]:
        """The ids of each text, or pair of texts, cut to max_length tokens and not padded."""
        encoded = self._tokenizer(list(texts), pairs and list(pairs), truncation=True, max_length=max_length)
        return encoded["input_ids"]

    def pixels(self, images: Sequence[Any]) -> dict[str, np.ndarray]:
        """The pixel_values (B, Y, X, C) of Pillow's images, which must be RGB, and a pixel_mask if they have one."""
        processor = self._processor()
        if "Detr" in type(processor).__name__ and dict(processor.size).keys() == {"longest_edge"}:
            return _by_longest_edge(processor, images)
        spec = spec_class(self.config["model_type"])
        found = processor(images=list(images), return_tensors="np", **spec.processor_arguments(images))
        return spec.from_processor(dict(found))

    def generate(self, arrays: Mapping[str, np.ndarray], **options: Any) -> list[list[int]]:
        """The new tokens of each row, greedily or with beams, up to and with the first that ends it; with a cache.

        arrays: what an encoder reads, or the prompt of a decoder in input_ids (1, T).
        """
        given = self.arguments(arrays)
        is_prompt = "input_ids" in arrays and not self.model.config.is_encoder_decoder
        prompt = arrays["input_ids"].shape[1] if is_prompt else 1
        with self.torch.no_grad(), threads_for(self.size):
            if "input_ids" in given and "attention_mask" not in given:
                given["attention_mask"] = self.torch.ones_like(given["input_ids"])
            rows = self.model.generate(**given, do_sample=False, use_cache=True, **options)[:, prompt:].tolist()
        ends = [next((i + 1 for i, t in enumerate(row) if t in options["eos_token_id"]), len(row)) for row in rows]
        return [row[:end] for row, end in zip(rows, ends, strict=True)]

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of rows of tokens, without special tokens."""
        return self._tokenizer.batch_decode(rows, skip_special_tokens=True)

    def masks(self, logits: np.ndarray, sizes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """The label of every pixel of each image of a size (Y, X), from logits (B, y, x, L)."""
        output = SimpleNamespace(logits=self._tensor(logits).movedim(-1, 1))
        found = self._processor().post_process_semantic_segmentation(output, list(sizes))
        return [labels.cpu().numpy() for labels in found]

    def segments(self, logits: np.ndarray, masks: np.ndarray, sizes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        """The number of an object for every pixel of each image of a size (Y, X)."""
        logits, masks = self._tensor(logits), self._tensor(masks)
        names = {"class_queries_logits": logits, "masks_queries_logits": masks}  # of Mask2Former
        output = SimpleNamespace(logits=logits, pred_masks=masks, **names)
        found = self._processor().post_process_panoptic_segmentation(
            output, label_ids_to_fuse=set(), target_sizes=list(sizes)
        )
        return [_numpy(one["segmentation"]).astype(np.int32) for one in found]

    def objects(
        self, logits: np.ndarray, boxes: np.ndarray, sizes: Sequence[tuple[int, int]], threshold: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The labels (n,) and boxes (n, 4) of the objects of each image of a size (Y, X)."""
        output = SimpleNamespace(logits=self._tensor(logits), pred_boxes=self._tensor(boxes))
        import transformers

        # PP-DocLayout's needs torchvision to be imported; it finds the same objects, in another order.
        processor = self._processor() if self.has_processor else transformers.RTDetrImageProcessorPil()
        found = processor.post_process_object_detection(output, threshold, self.torch.tensor(sizes))
        return [(_numpy(one["labels"]), _numpy(one["boxes"])) for one in found]

    def stages(
        self, arrays: Mapping[str, np.ndarray], switches: Sequence[str] = (), modules: Iterable[str] = ()
    ) -> dict[str, np.ndarray]:
        """Every stage's output, by name and in order: embeddings, layer.0, ..., and the fields of the output.

        Images are (B, Y, X, C) here, in arrays and outputs.  modules: names of modules whose outputs are stages, too,
        if the model has them and they return arrays.
        """
        torch, found = self.torch, {}

        def keep(name: str) -> Any:
            return lambda _module, _inputs, output: found.update({name: _numpy(_channels_last(_main_tensor(output)))})

        def keep_input(name: str) -> Any:
            def hook(_module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
                first = inputs[0] if inputs else named.get("hidden_states", next(iter(named.values())))
                found[name] = _numpy(_channels_last(first))

            return hook

        def keep_array(name: str) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                if torch.is_tensor(array := _main_tensor(output)):
                    found[f"{PREFIX}{name}"] = _numpy(_channels_last(array))

            return hook

        named = dict(self.model.named_modules()) if modules else {}
        hooks = [named[name].register_forward_hook(keep_array(name)) for name in modules if name in named]
        for name, module in self._places.items():
            if isinstance(module, torch.nn.ModuleList):
                before = name.removesuffix("layer") + "embeddings"
                if before not in self._places:
                    hooks.append(module[0].register_forward_pre_hook(keep_input(before), with_kwargs=True))
                hooks += [layer.register_forward_hook(keep(f"{name}.{i}")) for i, layer in enumerate(module)]
            else:
                hooks.append(module.register_forward_hook(keep(name)))
        try:
            fields = self.outputs(arrays, switches)
        finally:
            for hook in hooks:
                hook.remove()
        return spec_class(self.config["model_type"]).from_stages(found, arrays, self.config) | fields

    def outputs(self, arrays: Mapping[str, np.ndarray], switches: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """The fields of the output, by name and in order; images are (B, Y, X, C) here."""
        with (
            self.torch.no_grad(),
            threads_for(self.size),
            self._sure_convolutions(),
            self._sure_samples(),
            self._finite_masks(),
        ):
            options = self.arguments(arrays) | dict.fromkeys(switches, True)
            output = self.model(**options, **({"use_cache": False} if self.config.get("is_decoder") else {}))
        fields = {name: output[name] for name in output if name not in NOT_COMPARED and output[name] is not None}
        fields = {name: value for name, value in fields.items() if not isinstance(value, Mapping)}  # of a part
        for name in spec_class(self.config["model_type"]).not_compared:
            fields.pop(name, None)
        if self.architecture.endswith("ForSequenceClassification"):
            fields.pop("encoder_last_hidden_state", None)
        if not self.has_pooler:
            fields.pop("pooler_output", None)
        if self.architecture.endswith("ForImageClassification") and "logits" not in fields:  # PP-LCNet's name for them
            fields["logits"] = fields.pop("last_hidden_state")
        if not {"pixel_values", "input_features"} & arrays.keys():
            return number_fields(fields, _numpy)
        if fields.get("pooler_output") is not None and fields["pooler_output"].ndim == 4:  # of a ResNet: 1 x 1 pixels
            fields["pooler_output"] = fields["pooler_output"].flatten(1)
        as_they_are = number_fields({name: fields.pop(name) for name in NO_IMAGES if name in fields}, _numpy)
        return number_fields(fields, lambda value: _numpy(_channels_last(value))) | as_they_are

    @contextmanager
    def _sure_convolutions(self) -> Iterator[None]:
        """Compute in float32 what torch 2.13 computes wrongly in bfloat16 on a CPU with AMX."""
        from zoo.ops.on_torch.vision import computes_bfloat16

        torch, functional = self.torch, self.torch.nn.functional
        conv2d = functional.conv2d

        def convolve(
            x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, *more: Any
        ) -> Any:
            more = (dilation, *more)
            size = x, weight, pair(stride), (0, 0) if isinstance(padding, str) else pair(padding), pair(dilation)
            if x.dtype != torch.bfloat16 or x.device.type != "cpu" or computes_bfloat16(*size):
                return conv2d(x, weight, bias, stride, padding, *more)
            wide = None if bias is None else bias.float()
            return conv2d(x.float(), weight.float(), wide, stride, padding, *more).bfloat16()

        try:
            functional.conv2d = convolve
            yield
        finally:
            functional.conv2d = conv2d

    @contextmanager
    def _sure_samples(self) -> Iterator[None]:
        """Give grid_sample contiguous images: of 16 bits it reads past others on a CPU (torch 2.13)."""
        functional = self.torch.nn.functional
        sample = functional.grid_sample
        try:
            functional.grid_sample = lambda x, *args, **more: sample(x.contiguous(), *args, **more)
            yield
        finally:
            functional.grid_sample = sample

    @contextmanager
    def _finite_masks(self) -> Iterator[None]:
        """Masks with float32's least number in float64, too: softmax in float32 makes -inf of float64's, then NaN."""
        torch = self.torch
        finfo = torch.finfo
        try:
            if self.dtype == torch.float64:
                limits = {torch.float64: finfo(torch.float32)}
                setattr(torch, "finfo", lambda dtype=torch.float32: limits.get(dtype) or finfo(dtype))  # noqa: B010
            yield
        finally:
            setattr(torch, "finfo", finfo)  # noqa: B010

    @cached_property
    def _places(self) -> dict[str, Any]:
        """The modules that the family's row in the registry says are stages: "layer" is a list of them."""
        family = FAMILIES[self.config["model_type"]]
        body, stages = self.model.base_model, family.stages
        if stages:
            places = [(name, path) for name, paths in stages.items() for path in paths.split(" or ")]
            if not any(_has(body, path) for _, path in places):  # a body that is deeper in the model
                body = body.get_submodule(family.load(family.head(self.architecture) or "Model").name_map.prefix)
            has = {name: path for name, path in places if _has(body, path)}
            prefixes = {name.rpartition(".")[0] for name in has}
            lone = f"{prefixes.pop()}." if len(prefixes) == 1 and len(has) < len(stages) else ""
            return {name.removeprefix(lone): body.get_submodule(path) for name, path in has.items()}
        depth = self.model.config.num_hidden_layers
        lists = [m for m in body.modules() if isinstance(m, self.torch.nn.ModuleList) and len(m) == depth]
        if not lists:
            raise BadReferenceError(
                f"{type(body).__name__} of transformers has no list of {depth} layers: the row of the "
                "family in zoo/registry.py may say where its stages are"
            )
        return {"layer": lists[0]}

    def arguments(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Arrays as the model takes them: images with channels first."""
        given = {name: self._tensor(array) for name, array in arrays.items()}
        if "bool_masked_pos" in given:
            given["bool_masked_pos"] = given["bool_masked_pos"].bool()
        return spec_class(self.config["model_type"]).arguments(given, self.config)

    def _tensor(self, array: np.ndarray) -> Any:
        """An array where the model is: floats in its dtype, all else as ids, since torch takes no bool for one."""
        is_float = array.dtype.kind == "f"
        tensor = self.torch.from_numpy(np.array(array, np.float32 if is_float else np.int64))  # torch wants it writable
        return tensor.to(self.device, self.dtype if is_float else None)

    @property
    def has_processor(self) -> bool:
        """False if the class of its image processor has no version that computes with Pillow."""
        import transformers

        path = self.folder / "preprocessor_config.json"
        name = read_json(path).get("image_processor_type") if path.is_file() else None
        return name is None or hasattr(transformers, name.removesuffix("Fast").removesuffix("Pil") + "Pil")

    def _processor(self) -> Any:
        from transformers import AutoImageProcessor

        return AutoImageProcessor.from_pretrained(self.folder, local_files_only=True, backend="pil")

    @cached_property
    def _tokenizer(self) -> Any:
        return read_tokenizer(self.folder)


def read_tokenizer(folder: Path) -> Any:
    """transformers' tokenizer of a folder."""
    import transformers

    more = {}
    if (folder / "merges.txt").exists() and not any(
        (folder / name).exists() for name in ("tokenizer.json", "special_tokens_map.json")
    ):
        # From these two files alone version 5 makes a <mask> that does not take the space before it, unlike version
        # 4 and every repository that has a tokenizer.json.
        more["mask_token"] = transformers.AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    try:
        found = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, **more)
        path = folder / "tokenizer.json"
        raw = path.read_text("utf-8") if path.exists() else ""
        own = found.backend_tokenizer.to_str() if raw else ""
        if any(step in raw and step not in own for step in ('"Digits"', '"Split"')):
            # Version 5 makes a GPT2Tokenizer, which StarCoder2 names, anew from vocabulary and merges, and forgets
            # how tokenizer.json splits words; this class takes the file as it is, as version 4 did.
            cls: Any = transformers.PreTrainedTokenizerFast
            found = cls.from_pretrained(folder, local_files_only=True, **more)
        return found
    except Exception as e:
        raise BadReferenceError(f"transformers cannot read the tokenizer in {folder}: {type(e).__name__}: {e}") from e


def _by_longest_edge(processor: Any, images: Sequence[Any]) -> dict[str, np.ndarray]:
    """Process images as zoo does for `size: {"longest_edge": N}`: transformers refuses it, and gets each image's size.

    The rule is that of the code which these checkpoints were trained with: the long side becomes N, the short follows.
    """
    edge, values = processor.size["longest_edge"], []
    for image in images:
        height, width = (round(edge / max(image.size) * side) for side in (image.height, image.width))
        size = {"height": height, "width": width}
        values.append(processor(images=[image], size=size, do_pad=False, return_tensors="np")["pixel_values"][0])
    Y, X = (max(value.shape[axis] for value in values) for axis in (1, 2))
    pixel_values = np.zeros((len(values), Y, X, 3), np.float32)
    pixel_mask = np.zeros((len(values), Y, X), np.int64)
    for b, value in enumerate(values):
        pixel_values[b, : value.shape[1], : value.shape[2]] = np.moveaxis(value, 0, -1)
        pixel_mask[b, : value.shape[1], : value.shape[2]] = 1
    return {"pixel_values": pixel_values, "pixel_mask": pixel_mask}


def _has(module: Any, path: str) -> bool:
    """True if a module has a part of this path."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module is not None


def _main_tensor(output: Any) -> Any:
    """The tensor that a module returns: the first of a tuple, the last of a list of feature maps."""
    while isinstance(output, (tuple, list)):
        output = output[0 if isinstance(output, tuple) else -1]
    return output


def _channels_last(tensor: Any) -> Any:
    return tensor.movedim(1, -1) if tensor.ndim == 4 else tensor


def _numpy(tensor: Any) -> np.ndarray:
    return tensor.detach().float().cpu().numpy().copy()
