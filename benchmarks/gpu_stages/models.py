"""Models at full size in bfloat16, zoo against transformers: eager attention, sdpa, and torch.compile with CUDA graphs.

Time is a user's: from the call to the end of the work.  Outputs are compared first, both with transformers in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..gpu_measure import ROUNDS, UNIT, Bench, Case, compare, is_ours, judged, reason, timed
from ..gpu_report import Report, Row, run_rows
from . import packed
from .bandwidth import ceilings
from .pairs import Compiled, Pair, Tensors

DTYPE = "bfloat16"
TWICE = 2  # a graph is made when a shape comes for the second time
POSITIONS = {"max_position_embeddings": 8192}
SMALLEST = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1, "vocab_size": 50, "head_dim": 8}


def run(bench: Bench, report: Report) -> None:
    bench.ceilings = ceilings(bench)
    run_rows(bench, report, rows(bench))


class Held:
    """The pair that the last row had, for the next one if that has the same; there is room for one on the card."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.key: tuple[Any, ...] | None = None
        self.pair: Any = None

    def get(self, *key: Any) -> Pair:
        if key != self.key:
            self.key = self.pair = None
            self.bench.free()
            self.pair = Pair(self.bench, *key)
            self.key = key
        return self.pair


def rows(bench: Bench) -> list[Row]:
    """What matters most first, as far as rows that share a model may stand together."""
    held = Held(bench)
    make: list[tuple[str, float, Callable[[], dict[str, Any]]]] = []
    t = bench.tiny

    def add(name: str, seconds: float, call: Callable[..., dict[str, Any]], *args: Any) -> None:
        make.append((name, seconds, partial(call, held, *args)))

    text, new = (6, 2) if t else (512, 64)
    for model, batches, seconds in (("Llama-3-8B", (1,), 120), ("Llama-3.2-1B", () if t else (1, 8), 60)):
        for batch in batches:
            compiles = batch == 1
            name = f"{model} decode, batch {batch}, after {text} tokens"
            add(name, seconds if compiles else 15, llama_decode, model, batch, text, new, compiles)
        for weights in ("int8", "int4") if t or model == "Llama-3.2-1B" else ():
            add(f"{model} decode, {weights}, after {text} tokens", 30, llama_packed, model, weights, text, new)
        for T in (text,) if t else (512, 2048):
            add(f"{model} prefill, {T} tokens", 10, llama_prefill, model, T)
    for batch, T, compiles in ((1, 8, False),) if t else ((1, 128, True), (64, 128, True), (64, 512, False)):
        add(f"bert-base, batch {batch}, {T} tokens", 45 if compiles else 10, bert, batch, T, compiles)
    for batch, compiles in ((2, True),) if t else ((1, True), (64, True), (256, False)):
        add(f"vit-base, batch {batch}", 45 if compiles else 10, vit, batch, compiles)
    Y, X = (48, 64) if t else (700, 1000)
    add(f"table transformer, structure, {X} x {Y}", 60, table, (Y, X))
    for batch in (2,) if t else (1, 8):
        add(f"trocr-base, batch {batch}, {new} tokens", 20, trocr, batch, new)
    return [Row(name, 1 if t else seconds, call) for name, seconds, call in make]


# Encoders


def _encoder(
    held: Held,
    key: tuple[Any, ...],
    ours: tuple[Any, ...],
    theirs: dict[str, Any],
    pick: Any,
    batch: int,
    compiles: bool,
) -> dict[str, Any]:
    """ours: what zoo's model is called with; theirs: what transformers' is.

    pick: of both outputs what is compared.
    """
    bench, pair = held.bench, held.get(*key)
    calls = _with_and_without(pair, lambda runner: partial(runner, pair.ours, *ours))
    if pair.has_sdpa:
        calls["transformers eager"] = partial(pair.twin("eager"), **theirs)
        calls["transformers sdpa"] = partial(pair.twin("sdpa"), **theirs)
    else:
        calls["transformers eager"] = partial(pair.twin(), **theirs)
    compiled = None
    if compiles:
        compiled = Compiled(bench, pair.twin("sdpa" if pair.has_sdpa else None))
        calls["torch.compile"] = partial(compiled, **theirs)
    wide = {name: x.float() if x.is_floating_point() else x for name, x in theirs.items()}
    exact = pair.exact()
    case = Case(calls, lambda: pick(exact(**wide)), UNIT[DTYPE], pick=lambda out: pick(out).clone(), wall=True)
    result = compare(bench, case)
    return {**result, **_per_second(result, "rows_per_second", batch), **_compile_seconds(compiled), **pair.facts()}


def _with_and_without(pair: Pair, call: Callable[[Any], Any]) -> dict[str, Any]:
    """Our calls by a runner: with CUDA graphs, which are made here, and without, where there are any to be without."""
    from zoo.runner import Runner

    if not pair.has_graphs:
        return {"zoo": call(pair.runner)}
    with_graphs = call(pair.runner)
    for _ in range(TWICE):
        with_graphs()
    return {"zoo": with_graphs, "zoo without graphs": call(Runner())}


def _per_second(result: dict[str, Any], what: str, count: float) -> dict[str, Any]:
    times = {name: found for name, found in result["times"].items() if found}
    return {what: {name: count / (found["median_ms"] / 1e3) for name, found in times.items()}} if times else {}


def _compile_seconds(compiled: Compiled | None) -> dict[str, Any]:
    return {} if compiled is None or compiled.seconds is None else {"compile_seconds": round(compiled.seconds, 1)}


def bert(held: Held, batch: int, T: int, compiles: bool) -> dict[str, Any]:
    """Texts of several lengths, but for a single one."""
    import torch

    bench = held.bench
    ids = torch.randint(5, 500, (batch, T), device=bench.device, generator=torch.Generator(bench.device).manual_seed(0))
    lengths = torch.linspace(T, T // 2, batch, device=bench.device).long()
    mask = torch.arange(T, device=bench.device) < lengths[:, None]
    theirs = {"input_ids": ids, "attention_mask": mask.long()}
    pick = lambda out: out.last_hidden_state[mask]
    return _encoder(held, ("bert-base-uncased", "Model"), (ids, mask), theirs, pick, batch, compiles)


def vit(held: Held, batch: int, compiles: bool) -> dict[str, Any]:
    pair = held.get("vit-base-patch16-224")
    pixels = _pixels(held.bench, batch, (pair.config.image_size,) * 2)
    theirs = {"pixel_values": pixels.permute(0, 3, 1, 2).contiguous()}
    return _encoder(held, ("vit-base-patch16-224",), (pixels,), theirs, _logits, batch, compiles)


def table(held: Held, size: tuple[int, int]) -> dict[str, Any]:
    pixels = _pixels(held.bench, 1, size)
    theirs = {"pixel_values": pixels.permute(0, 3, 1, 2).contiguous()}
    key = ("table-transformer-structure-recognition-v1.1-all",)
    return _encoder(held, key, (pixels,), theirs, _logits, 1, compiles=True)


def _logits(out: Any) -> Any:
    return getattr(out, "logits", out)


def _pixels(bench: Bench, batch: int, size: tuple[int, int]) -> Any:
    return bench.normal(batch, *size, 3)


# Reading


def trocr(held: Held, batch: int, new: int) -> dict[str, Any]:
    """From pixel values to `new` greedy tokens; what is compared is the logits of the first."""
    import numpy as np
    import torch

    from zoo.generate import GenerationConfig, generate

    bench, pair = held.bench, held.get("trocr-base-handwritten")
    begin, model = pair.config.decoder.decoder_start_token_id or 2, pair.ours
    pixels = _pixels(bench, batch, (pair.config.encoder.image_size,) * 2)
    first = pixels.permute(0, 3, 1, 2).contiguous()
    options = GenerationConfig(max_new_tokens=new, eos_token_id=())
    start = np.full((batch, 1), begin)

    def ours(runner: Any) -> Any:
        states = runner.run(model.states, model.encoder.pixels(pixels))
        found = generate(runner.decoder(model.decoder), start, options, encoder_hidden_states=states)
        return [texts[0].ids.tolist() for texts in found]

    def theirs(module: Any) -> Any:
        module.generation_config.eos_token_id = None  # none of them ends early
        same = {"max_new_tokens": new, "do_sample": False, "num_beams": 1, "use_cache": True}
        return module.generate(first, decoder_start_token_id=begin, pad_token_id=1, **same)[:, 1:].tolist()

    ids = torch.full((batch, 1), begin, device=bench.device)
    modules = {f"transformers {name}": pair.twin(name) for name in ("eager", "sdpa")}
    exact = pair.exact()(pixel_values=first.float(), decoder_input_ids=ids).logits
    logits = {name: module(pixel_values=first, decoder_input_ids=ids).logits for name, module in modules.items()}
    found = judged({"zoo": model(pixels, ids).logits, **logits}, exact, UNIT[DTYPE])
    calls = _with_and_without(pair, lambda runner: partial(ours, runner))
    calls |= {name: partial(theirs, module) for name, module in modules.items()}
    tokens = {name: call() for name, call in calls.items()}
    found["same_tokens"] = _agreement(tokens["zoo"], tokens["transformers sdpa"])
    if "wrong" in found:
        return {**found, "times": dict.fromkeys(calls), "ratios": {}}
    result = {**found, **compare(bench, Case(calls, None, UNIT[DTYPE], pick=lambda out: None, wall=True))}
    return {**result, **_per_second(result, "tokens_per_second", batch * new), **pair.facts()}


def _agreement(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """The share of tokens before the first that differs: rounding decides between two that are as likely."""
    same = 0
    for x, y in zip(ours, theirs, strict=True):
        same += next((i for i, (a, b) in enumerate(zip(x, y, strict=True)) if a != b), len(x))
    return same / sum(map(len, ours))


# Llama


class Decoder(NamedTuple):
    """begin: a prompt (B, T), into an empty cache -> logits (B, V) of the next token.  step: ids (B, 1) -> the same."""

    begin: Callable[[Any], Any]
    step: Callable[[Any], Any]


def llama_decode(held: Held, spec: str, batch: int, text: int, new: int, compiles: bool) -> dict[str, Any]:
    """`new` greedy tokens, one after the other, chosen on the device, after a prompt."""
    bench, pair = held.bench, _llama(held, spec)
    ids, room = _prompt(bench, pair, batch, text), text + new + 8
    decoders = {"zoo": _ours(pair.runner.decoder(pair.ours), batch, room)}
    if pair.has_graphs:
        decoders["zoo without graphs"] = _ours(pair.ours, batch, room)
        _two_logits(decoders["zoo"], ids)  # the first of the TWICE
    for name in ("eager", "sdpa"):
        decoders[f"transformers {name}"] = _theirs(pair.twin(name))
    compiled = None
    if compiles:
        compiled = Compiled(bench, pair.twin("sdpa"))
        decoders["torch.compile"] = _static(pair, compiled, room)
    outputs, refused = {}, {}
    for name, decoder in dict(decoders).items():
        try:
            _two_logits(decoder, ids)  # compiled and recorded, where that is done
            outputs[name] = _two_logits(decoder, ids)
        except Exception as e:
            if is_ours(name) or "CUDA error" in str(e):
                raise
            refused[name] = reason(e)
            del decoders[name]
    # Where float32 has no room beside all else, the reference is sdpa, and eager attention says how far two may differ.
    small = pair.bytes < 6e9
    if not small and "transformers sdpa" not in outputs:
        return {"error": "nothing to compare with: transformers sdpa was refused", "refused": refused}
    wanted = _two_logits(_theirs(pair.exact()), ids) if small else outputs["transformers sdpa"]
    found = judged(outputs, wanted, UNIT[DTYPE])
    if refused:
        found["refused"] = refused
    found["reference"] = "transformers in float32" if small else "transformers sdpa in bfloat16"
    outputs.clear()
    bench.free_memory()
    if "wrong" in found:
        return {**found, "times": dict.fromkeys(decoders), "ratios": {}}
    times = _token_times(bench, decoders, ids, new)
    embedding = pair.theirs.get_input_embeddings().weight
    tied = pair.config.tie_word_embeddings
    read = pair.bytes - (0 if tied else embedding.numel() * embedding.element_size())
    result = timed(bench, times, bytes=read)
    more = {**_per_second(result, "tokens_per_second", batch), **_compile_seconds(compiled), **pair.facts()}
    return {**found, **result, **more}


def _token_times(bench: Bench, decoders: Mapping[str, Decoder], ids: Any, new: int) -> dict[str, list[float]]:
    """Seconds of a token for each, in turns; in the interpreter no time means anything."""
    times: dict[str, list[float]] = {name: [] for name in decoders}
    names = list(decoders)
    for i in range(1 if bench.interpreted else ROUNDS - 2):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            seconds = _seconds_a_token(bench, decoders[name], ids, new)
            times[name] += [] if bench.interpreted else [seconds]
    return times


def llama_packed(held: Held, spec: str, weights: str, text: int, new: int) -> dict[str, Any]:
    """Tokens by packed weights, one sequence, beside the same rounded numbers in bfloat16."""
    from zoo.nn import leaves
    from zoo.runner import runner_for

    bench, pair = held.bench, _llama(held, spec)
    ids, room = _prompt(bench, pair, 1, text), text + new + 8
    source = Tensors(pair.theirs.state_dict())
    device, cfg = f"torch:{bench.device}", pair.ours.config
    ours = type(pair.ours).from_source(source, cfg, device=device, dtype=DTYPE, weights=weights)
    models = {"zoo": ours, DTYPE: packed.widened(ours, DTYPE)}
    decoders = {name: _ours(runner_for(model).decoder(model), 1, room) for name, model in models.items()}
    for decoder in decoders.values():
        _two_logits(decoder, ids)  # the first of the TWICE
    outputs = {name: _two_logits(decoder, ids) for name, decoder in decoders.items()}
    found = judged(outputs, _two_logits(_ours(packed.widened(ours, "float32"), 1, room), ids), UNIT[DTYPE])
    found["reference"] = "the same numbers in float32"
    if "wrong" in found:
        return {**found, "times": dict.fromkeys(decoders), "ratios": {}}
    bench.free_memory()
    stored = {id(leaf): leaf.nbytes for _, leaf in leaves(ours)}
    result = timed(bench, _token_times(bench, decoders, ids, new), bytes=sum(stored.values()))
    return {**found, **result, **_per_second(result, "tokens_per_second", 1)}


def llama_prefill(held: Held, spec: str, T: int) -> dict[str, Any]:
    """A prompt into an empty cache, and the logits of its last token."""
    bench, pair = held.bench, _llama(held, spec)
    ids = _prompt(bench, pair, 1, T)
    calls: dict[str, Any] = {"zoo": partial(_ours(pair.ours, 1, T).begin, ids)}
    for name in ("eager", "sdpa"):
        calls[f"transformers {name}"] = partial(_theirs(pair.twin(name)).begin, ids)
    reference = calls["transformers sdpa"] if pair.bytes > 6e9 else partial(_theirs(pair.exact()).begin, ids)
    layers = sum(p.numel() for name, p in pair.theirs.named_parameters() if "layers." in name and p.ndim == 2)
    head = pair.theirs.get_output_embeddings().weight.numel()
    cfg = pair.config
    size = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
    pairs = cfg.num_hidden_layers * 2 * T * (T + 1) * cfg.num_attention_heads * size
    return compare(bench, Case(calls, reference, UNIT[DTYPE], wall=True, flops=2 * (layers * T + head) + pairs))


def _llama(held: Held, spec: str) -> Pair:
    return held.get(spec, None, SMALLEST if held.bench.tiny else POSITIONS)


def _prompt(bench: Bench, pair: Pair, batch: int, T: int) -> Any:
    import torch

    generator = torch.Generator(bench.device).manual_seed(0)
    return torch.randint(0, pair.config.vocab_size, (batch, T), device=bench.device, generator=generator)


def _ours(model: Any, batch: int, room: int) -> Decoder:
    caches: list[Any] = []

    def begin(ids: Any) -> Any:
        caches.clear()  # whose memory the next one takes
        caches.append(model.new_cache(batch, room))
        return model.next_logits(ids, None, caches[0])

    return Decoder(begin, lambda ids: model.next_logits(ids, None, caches[0]))


def _theirs(module: Any) -> Decoder:
    caches: list[Any] = []

    def begin(ids: Any) -> Any:
        out = module(ids, use_cache=True, logits_to_keep=1)
        caches[:] = [out.past_key_values]
        return out.logits[:, -1]

    def step(ids: Any) -> Any:
        return module(ids, past_key_values=caches[0], use_cache=True, logits_to_keep=1).logits[:, -1]

    return Decoder(begin, step)


def _static(pair: Pair, compiled: Compiled, room: int) -> Decoder:
    """As transformers' own documentation compiles a step: a cache of fixed size, and the prompt not compiled."""
    from transformers import StaticCache

    module = pair.twin("sdpa")
    cache = StaticCache(config=pair.config, max_cache_len=room)

    def begin(ids: Any) -> Any:
        cache.reset()
        return module(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    def step(ids: Any) -> Any:
        return compiled(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    return Decoder(begin, step)


def _two_logits(decoder: Decoder, ids: Any) -> Any:
    """Logits after the prompt, and after one token more: the same for all."""
    import torch

    first = decoder.begin(ids).float().clone()
    return torch.stack([first, decoder.step(ids[:, :1].clone()).float()])


def _seconds_a_token(bench: Bench, decoder: Decoder, ids: Any, new: int) -> float:
    chosen = decoder.begin(ids).argmax(-1, keepdim=True)
    chosen = decoder.step(chosen).argmax(-1, keepdim=True)
    bench.synchronize()
    begin = time.perf_counter()
    for _ in range(new):
        chosen = decoder.step(chosen).argmax(-1, keepdim=True)
    bench.synchronize()
    return (time.perf_counter() - begin) / new
