"""Jinja's language, worked out on plain values: what chat templates are written in.

jinja2 parses a template.  What it would go on to do, to write a Python program and run it, is not done: every node of
the tree becomes a closure here, over values of the kinds in `values`, with jinja2's own filters and tests.  So a
template means what it means to jinja2 (and to transformers, whose additions are here), and cannot say anything that
is not in this file: no Python object that leads further is ever a value of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import nodes
from jinja2.compiler import find_undeclared
from jinja2.exceptions import TemplateRuntimeError, TemplateSyntaxError
from jinja2.idtracking import VAR_LOAD_UNDEFINED, Symbols
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, Macro, Undefined
from jinja2.utils import missing

from .expressions import ENVIRONMENT, GLOBALS, WRITTEN, call_of, filter_of, value_of, written_text
from .scope import Output, Run, Scope, Value
from .values import Function, Namespace, text_of

Statement = Callable[[Scope, Output], str | None]  # "break" or "continue", or nothing


class Template:
    """A template, ready to be rendered any number of times.  Errors are jinja2's, and Python's of the operation."""

    def __init__(self, source: str):
        tree, symbols = Parser(ENVIRONMENT, source).parse(), Symbols()
        symbols.analyze_node(tree)
        self._opened, self._body = _opening(symbols), _block(tree.body, symbols)

    def render(self, variables: Mapping[str, Any], run: Run) -> str:
        """The text for plain data (texts, numbers, lists, dicts); `run` bounds it, and tells where an error was."""
        given = {**GLOBALS, "strftime_now": Function(run.now.strftime), **variables}
        output = Output(run)
        _all_of(self._body(self._opened(Scope(None, run, given)), output))
        return "".join(output.parts)


def _block(body: Iterable[nodes.Node], symbols: Symbols) -> Statement:
    statements = [(node.lineno, _statement(node, symbols)) for node in body]

    def block(scope: Scope, output: Output) -> str | None:
        run = scope.run
        for line, statement in statements:
            run.line = line
            if signal := statement(scope, output):
                return signal
        return None

    return block


def _statement(node: Any, symbols: Symbols) -> Statement:
    make = _STATEMENTS.get(type(node))
    if make is None:
        raise TemplateSyntaxError(f"{type(node).__name__.lower()} is not for chat templates", node.lineno)
    return make(node, symbols)


def _inner(node: nodes.Node, symbols: Symbols, **more: Any) -> tuple[Symbols, Callable[[Scope], Scope]]:
    """The symbols of a block within others, and what opens its scope.

    A name that is assigned in a block, and not used in it before, is undefined in it until then, wherever else it is
    defined: jinja2 has it so.
    """
    inner = Symbols(symbols)
    inner.analyze_node(node, **more)
    return inner, _opening(inner)


def _opening(symbols: Symbols) -> Callable[[Scope], Scope]:
    unset = {name: missing for name, ref in symbols.refs.items() if symbols.loads[ref][0] == VAR_LOAD_UNDEFINED}
    return lambda scope: Scope(scope, scope.run, unset.copy())


def _output(node: nodes.Output, _: Symbols) -> Statement:
    parts = [
        (part.lineno, part.data if isinstance(part, nodes.TemplateData) else value_of(part)) for part in node.nodes
    ]

    def output(scope: Scope, output: Output) -> None:
        for line, part in parts:
            if isinstance(part, str):
                output.write(part)
            else:
                scope.run.line = line
                output.write(text_of(part(scope)))

    return output


def _if(node: nodes.If, symbols: Symbols) -> Statement:
    branches = [(value_of(branch.test), _block(branch.body, symbols)) for branch in (node, *node.elif_)]
    otherwise = _block(node.else_, symbols)

    def choose(scope: Scope, output: Output) -> str | None:
        for test, body in branches:
            if test(scope):
                return body(scope, output)
        return otherwise(scope, output)

    return choose


def _for(node: nodes.For, symbols: Symbols) -> Statement:
    names = [name for name in node.find_all(nodes.Name) if name.name == "loop"]
    if any(name.ctx == "store" for name in names):
        raise TemplateSyntaxError("`loop` cannot be assigned to", node.lineno)
    if node.test is not None and "loop" in find_undeclared([node.test], ("loop",)):
        raise TemplateSyntaxError("the condition of a loop cannot ask for `loop`", node.lineno)
    told = node.recursive or "loop" in find_undeclared(node.iter_child_nodes(only=("body",)), ("loop",))
    inside, opened = _inner(node, symbols, for_branch="body")
    after, opened_after = _inner(node, symbols, for_branch="else")
    values, assign = value_of(node.iter), _assignment(node.target)
    test = None if node.test is None else value_of(node.test)
    body, otherwise = _block(node.body, inside), _block(node.else_, after)

    def kept(scope: Scope, items: Iterable[Any], test: Value) -> Iterable[Any]:
        for item in items:
            scope.run.step()
            inner = Scope(scope, scope.run)
            assign(inner, item)
            if test(inner):
                yield item

    def passes(scope: Scope, output: Output, items: Iterable[Any], depth: int) -> str | None:
        if test is not None:
            items = kept(scope, items, test)
        if told:

            def again(reciter: Iterable[Any], loop_render_func: Any, depth: int = 0) -> str:
                return written(scope, reciter, depth)

            items = LoopContext(items, Undefined, again if node.recursive else None, depth)
        unfinished = True  # no pass came to its end: what jinja2 asks before it does what is under `else`
        for item in items:
            scope.run.step()
            inner = opened(scope)
            if told:
                item, inner.values["loop"] = item
            assign(inner, item)
            signal = body(inner, output)
            if signal == "break":
                break
            unfinished = unfinished and signal is not None
        return otherwise(opened_after(scope), output) if unfinished else None

    def written(scope: Scope, items: Iterable[Any], depth: int) -> str:
        output = Output(scope.run)
        _all_of(passes(scope, output, items, depth))
        return output.taken()

    def loop(scope: Scope, output: Output) -> str | None:
        if not node.recursive:
            return passes(scope, output, values(scope), 0)
        output.write(written(scope, values(scope), 0))
        return None

    return loop


def _all_of(signal: str | None) -> None:
    if signal:
        raise TemplateRuntimeError(f"a {signal} outside of a loop")


def _set(node: nodes.Assign, _: Symbols) -> Statement:
    value, assign = value_of(node.node), _assignment(node.target)
    return lambda scope, _: assign(scope, value(scope))


def _captured(node: nodes.AssignBlock, symbols: Symbols) -> Statement:
    inside, opened = _inner(node, symbols)
    body, assign = _block(node.body, inside), _assignment(node.target)
    change = written_text if node.filter is None else filter_of(node.filter)

    def capture(scope: Scope, _: Output) -> str | None:
        inner, output = opened(scope), Output(scope.run)
        if signal := body(inner, output):
            return signal
        inner.values[WRITTEN] = output.taken()
        assign(scope, change(inner))
        return None

    return capture


def _filter_block(node: nodes.FilterBlock, symbols: Symbols) -> Statement:
    inside, opened = _inner(node, symbols)
    body, change = _block(node.body, inside), filter_of(node.filter)

    def filtered(scope: Scope, output: Output) -> str | None:
        inner, captured = opened(scope), Output(scope.run)
        if signal := body(inner, captured):
            return signal
        inner.values[WRITTEN] = captured.taken()
        output.write(_text(change(inner)))
        return None

    return filtered


def _with(node: nodes.With, symbols: Symbols) -> Statement:
    inside, opened = _inner(node, symbols)
    pairs = [(_assignment(target), value_of(value)) for target, value in zip(node.targets, node.values, strict=True)]
    body = _block(node.body, inside)

    def within(scope: Scope, output: Output) -> str | None:
        inner = opened(scope)
        for assign, value in pairs:
            assign(inner, value(scope))
        return body(inner, output)

    return within


def _generation(node: nodes.Scope, symbols: Symbols) -> Statement:
    inside, opened = _inner(node, symbols)
    body = _block(node.body, inside)
    return lambda scope, output: _all_of(body(opened(scope), output))


def _macro(node: nodes.Macro, symbols: Symbols) -> Statement:
    make = _function(node, symbols, node.name)

    def define(scope: Scope, _: Output) -> None:
        scope.values[node.name] = make(scope)

    return define


def _call_block(node: nodes.CallBlock, symbols: Symbols) -> Statement:
    make, call = _function(node, symbols), call_of(node.call)

    def run(scope: Scope, output: Output) -> None:
        output.write(_text(call(scope, {"caller": make(scope)})))

    return run


def _function(node: nodes.Macro | nodes.CallBlock, symbols: Symbols, name: Any = None) -> Callable[[Scope], Macro]:
    """A macro, or the body of a call block: a function of texts."""
    names = [argument.name for argument in node.args]
    defaults = dict(zip(reversed(names), map(value_of, reversed(node.defaults)), strict=False))
    asked = find_undeclared(node.body, ("caller", "kwargs", "varargs"))
    if "caller" in asked and "caller" in names and "caller" not in defaults:
        raise TemplateSyntaxError("an argument `caller` of a macro needs a default", node.lineno)
    own = [special for special in ("caller", "kwargs", "varargs") if special in asked and special not in names]
    inside, opened = _inner(node, symbols)
    body = _block(node.body, inside)

    def make(scope: Scope) -> Macro:
        def function(*values: Any) -> str:
            scope.run.step()
            inner, output = opened(scope), Output(scope.run)
            inner.values.update(zip((*names, *own), values, strict=True))
            for name in names:
                if inner.values[name] is not missing:
                    continue
                if name in defaults:
                    inner.values[name] = defaults[name](inner)
                else:
                    inner.values[name] = Undefined(f"parameter {name!r} was not provided", name=name)
            _all_of(body(inner, output))
            return output.taken()

        return Macro(ENVIRONMENT, function, name, names, "kwargs" in own, "varargs" in own, "caller" in asked, False)

    return make


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was wanted, found a value of type {type(value).__name__}")
    return value


def _assignment(target: Any) -> Callable[[Scope, Any], None]:
    if isinstance(target, nodes.Name):
        return lambda scope, value: scope.values.__setitem__(target.name, value)
    if isinstance(target, nodes.NSRef):
        find = value_of(nodes.Name(target.name, "load", lineno=target.lineno))

        def put(scope: Scope, value: Any) -> None:
            namespace = find(scope)
            if type(namespace) is not Namespace:
                raise TemplateRuntimeError("cannot assign attribute on non-namespace object")
            namespace.put(target.attr, value)

        return put
    if not isinstance(target, nodes.Tuple):
        raise TemplateSyntaxError(f"nothing can be assigned to a {type(target).__name__.lower()}", target.lineno)
    parts = [_assignment(part) for part in target.items]

    def unpack(scope: Scope, value: Any) -> None:
        items = list(value)
        if len(items) != len(parts):
            raise ValueError(f"{len(items)} values for {len(parts)} names")
        for assign, item in zip(parts, items, strict=True):
            assign(scope, item)

    return unpack


_STATEMENTS: dict[type, Callable[[Any, Symbols], Statement]] = {
    nodes.Output: _output,
    nodes.If: _if,
    nodes.For: _for,
    nodes.Assign: _set,
    nodes.AssignBlock: _captured,
    nodes.FilterBlock: _filter_block,
    nodes.With: _with,
    nodes.Scope: _generation,
    nodes.Macro: _macro,
    nodes.CallBlock: _call_block,
    nodes.Break: lambda *_: lambda *_: "break",
    nodes.Continue: lambda *_: lambda *_: "continue",
}
