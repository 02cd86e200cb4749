"""A model's side of training, on torch: parameters by their names in the checkpoint, and two modes.

A trainable model's arrays are the parameters themselves, and nothing computed from them is cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import CheckpointError, UnsupportedError, nearest
from .nn import BatchNorm, CacheLast, Dropout, FoldedModule, Module, leaves, modules
from .warning import warn
from .weights.reader import TensorPart, computed_array

# Fields of configs that drop whole layers at random, which zoo does not do.
LAYER_DROP = ("encoder_layerdrop", "decoder_layerdrop", "layerdrop")


class Trainable(Module):
    """A model's side of training; every method but `eval` needs `trainable=True` at loading."""

    is_trainable = False
    is_training = False
    config: Any
    _parts: dict[str, list[TensorPart]]  # path of a parameter -> the checkpoint's tensors in it
    _buffers: frozenset[int]  # ids of the arrays that no gradient changes

    def parameters(self) -> Iterator[Any]:
        """Every parameter once: leaf tensors, as torch's optimisers take them."""
        return (tensor for _, tensor in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """(name in the checkpoint, tensor) of every parameter; a shared one has its first name."""
        return ((name, tensor) for name, tensor in self._named_parameters() if id(tensor) not in self._buffers)

    def state_dict(self) -> dict[str, Any]:
        """Parameters and statistics by their names in the checkpoint: the tensors themselves, detached."""
        return {name: tensor.detach() for name, tensor in self._named_parameters()}

    def statistics(self) -> dict[str, Any]:
        """The tensors learned without gradients, by name: the means and variances of batch norms."""
        return {name: tensor for name, tensor in self._named_parameters() if id(tensor) in self._buffers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy a `state_dict` of a model like this one; CheckpointError where names or shapes differ."""
        own = dict(self._named_parameters())
        lacking, unknown = own.keys() - state.keys(), state.keys() - own.keys()
        if lacking or unknown:
            name = min(lacking or unknown)
            what = "has no tensor" if lacking else "has a tensor that the model does not know,"
            raise CheckpointError(f"the state {what} {name!r}{nearest(name, unknown if lacking else own)}")
        for name, tensor in own.items():
            if state[name].shape != tensor.shape:
                found, wanted = tuple(state[name].shape), tuple(tensor.shape)
                raise CheckpointError(f"the state's tensor {name!r} has shape {found}, expected {wanted}")
        for name, tensor in own.items():
            tensor.detach().copy_(state[name])

    def train(self, mode: bool = True) -> Any:
        """Dropout and learning batch norms on (or off) -> the model."""
        if mode:
            self._expect_trainable()
        self.is_training = mode
        for module in modules(self):
            if isinstance(module, Dropout | BatchNorm):
                module.is_training = mode
        return self

    def eval(self) -> Any:
        """Dropout and learning batch norms off, as they are after loading -> the model."""
        return self.train(False)

    def leaves_with_parts(self) -> Iterator[tuple[str, Any, list[TensorPart]]]:
        """Yield (path, array or QuantTensor, the checkpoint's tensors in it) of every parameter, as `leaves` does.

        UnsupportedError: an array was added to the model since it was read.
        """
        for path, array in leaves(self):
            if path not in self._parts:
                raise computed_array(path, array)
            yield path, array, self._parts[path]

    def _named_parameters(self) -> Iterator[tuple[str, Any]]:
        self._expect_trainable()
        seen: set[int] = set()
        for _, tensor, parts in self.leaves_with_parts():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield parts[0].name, tensor

    def _expect_trainable(self) -> None:
        if not self.is_trainable:
            raise UnsupportedError(
                f"this {type(self).__name__} was loaded to be used: to train it, load it with trainable=True, on "
                "device='torch:cpu' or 'cuda'"
            )


def make_trainable(model: Trainable) -> None:
    """Turn gradients on for a model just read on torch, and caches of what follows from weights off."""
    buffers: set[int] = set()
    for module in modules(model):
        buffers.update(id(getattr(module, name)) for name in module.fixed)
        if isinstance(module, FoldedModule):
            module.unfold()
        elif isinstance(module, CacheLast):
            module.max_elements = 0
        elif isinstance(module, BatchNorm):
            kept = (module.mean, module.var, *((module.weight, module.bias) if module.is_frozen else ()))
            buffers.update(map(id, kept))
    for _, tensor in leaves(model):
        tensor: Any
        if id(tensor) not in buffers:
            tensor.requires_grad_(True)
    model._buffers, model.is_trainable = frozenset(buffers), True
    dropped = [name for name in LAYER_DROP if model.config.extra.get(name)]
    if dropped:
        warn(f"the config has {', '.join(dropped)}, which zoo ignores: it trains all layers at every step")


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """A `with` block in which a model, or a part of one, has no dropout and no gradients."""
    import torch

    modes = [(m, m.is_training) for m in modules(model) if isinstance(m, Dropout | BatchNorm)]
    for module, _ in modes:
        module.is_training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.is_training = mode
