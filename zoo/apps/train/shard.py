"""A model sharded over processes: each has a part of every parameter, with its gradient and moments (FSDP2, torch's
`fully_shard`; ZeRO, https://arxiv.org/abs/1910.02054, stage 3).

A layer's parameters are gathered when it is called and again for its backward pass, and freed in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from ...nn import Module, is_array, leaves, modules


class _Shell(nn.Module):
    """The torch module for fully_shard: it has a part's parameters and sets them in the model for each call."""

    def __init__(self, part: Any, call: Callable[..., Any], own: set[int]):
        super().__init__()
        self.call = call
        keys: dict[int, str] = {}
        self.places: list[tuple[Any, str, Any]] = []  # (module, attribute, its value with keys for arrays)
        for module in _modules_of(part):
            for attribute, value in vars(module).items():
                if not attribute.startswith("_") and any(id(array) in own for array in _arrays(value)):
                    for array in _arrays(value):
                        if id(array) in own and id(array) not in keys:
                            keys[id(array)] = f"p{len(keys)}"
                            self.register_parameter(keys[id(array)], nn.Parameter(array.detach(), array.requires_grad))
                    self.places.append((module, attribute, _with_keys(value, keys)))
        self.keys = keys

    def put(self) -> None:
        """Set the current parameters in the model."""
        for module, attribute, template in self.places:
            setattr(module, attribute, self._fill(template))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.put()
        return self.call(*args, **kwargs)

    def _fill(self, template: Any) -> Any:
        if isinstance(template, _Key):
            return getattr(self, template.name)
        if isinstance(template, (list, tuple)):
            return type(template)(map(self._fill, template))
        return template


class _Key:
    def __init__(self, name: str):
        self.name = name


class ShardedModel:
    """A trainable model sharded over the default process group; `named_parameters` are this process's parts.

    Call its `loss` instead of the given one.  `gather` puts whole parameters back into the model.
    """

    def __init__(self, model: Any, loss: Callable[[list[Any]], Tensor]):
        self.model = model
        named = list(model.named_parameters())
        units = list(_units(model))
        # Parameters that several parts share, such as tied embeddings, belong to the whole model.
        times = Counter(i for unit in units for i in {id(array) for _, array in leaves(unit)})
        inside = {id(module) for unit in units for module in modules(unit)}
        others = [value for module in modules(model) if id(module) not in inside for value in vars(module).values()]
        times.update({id(array) for value in others for array in _arrays(value)})
        ids = {id(tensor) for _, tensor in named}
        self.shells: list[_Shell] = []
        for unit in units:
            own = {id(array) for _, array in leaves(unit)} & ids
            shell = _Shell(unit, partial(type(unit).__call__, unit), {i for i in own if times[i] == 1})
            if shell.keys:
                unit._shell = shell
                unit.__class__ = _route_calls(type(unit))
                fully_shard(shell)
                self.shells.append(shell)
        kept = {i for shell in self.shells for i in shell.keys}
        self.root = _Shell(model, loss, ids - kept)
        for i, shell in enumerate(self.shells):
            self.root.register_module(f"unit{i}", shell)
        fully_shard(self.root)
        of = {i: getattr(shell, key) for shell in (*self.shells, self.root) for i, key in shell.keys.items()}
        self._named = {name: of[id(tensor)] for name, tensor in named}
        for shell in (*self.shells, self.root):
            shell.put()

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(name in the checkpoint, this process's part as a DTensor)."""
        yield from self._named.items()

    def loss(self, examples: list[Any]) -> Tensor:
        return self.root(examples)

    @staticmethod
    def gather_tensor(x: Any) -> Any:
        """The whole of a sharded tensor; all processes must call it."""
        return x.full_tensor() if isinstance(x, DTensor) else x

    @staticmethod
    def like(x: Any, parameter: Any) -> Any:
        """A whole tensor sharded like the parameter."""
        if not isinstance(parameter, DTensor) or x.shape != parameter.shape:
            return x
        return distribute_tensor(x.to(parameter.device), parameter.device_mesh, parameter.placements)

    def gather(self) -> None:
        """Restore the model, with the trained parameters; all processes must call it."""
        for shell in (*self.shells, self.root):
            for key, parameter in list(shell.named_parameters(recurse=False)):
                found = self.gather_tensor(parameter).detach().requires_grad_(parameter.requires_grad)
                shell._parameters.pop(key)
                setattr(shell, key, found)
            shell.put()
        for unit in _units(self.model):
            if hasattr(unit, "_shell"):
                unit.__class__ = type(unit).__mro__[1]
                del unit._shell


def _units(node: Any) -> Iterator[Any]:
    """The layers of a model: the modules in its outermost lists of modules."""
    for value in list(vars(node).values()):
        if isinstance(value, (list, tuple)) and value and all(isinstance(one, Module) for one in value):
            yield from (one for one in value if callable(one))
        elif isinstance(value, Module):
            yield from _units(value)


def _modules_of(node: Any) -> Iterator[Any]:
    """Every module under a node except layers with a shell."""
    if isinstance(node, Module):
        yield node
        node = [value for name, value in vars(node).items() if not name.startswith("_")]
    if isinstance(node, (list, tuple)):
        for child in node:
            if not hasattr(child, "_shell"):
                yield from _modules_of(child)


def _arrays(value: Any) -> Iterator[Any]:
    if is_array(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one)


def _with_keys(value: Any, keys: dict[int, str]) -> Any:
    if is_array(value):
        return _Key(keys[id(value)]) if id(value) in keys else value
    return type(value)(_with_keys(one, keys) for one in value) if isinstance(value, (list, tuple)) else value


def _route_calls(cls: type) -> type:
    """The class of a layer that is called by its shell."""

    class Routed(cls):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self._shell(*args, **kwargs)

    Routed.__name__, Routed.__qualname__ = cls.__name__, cls.__qualname__
    return Routed
