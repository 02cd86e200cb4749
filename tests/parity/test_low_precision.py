"""Low precision: zoo's error to float32 is held against the reference's own, and faults are found all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_llama_parity import gate_and_up_swapped, groups_in_turn, not_causal, pairs_next_to_each_other

from parity.choices import compare_ids, compare_masks, compare_objects
from parity.compare import Multiple, Pair, compare, rule_for
from parity.reference import exact_products

BFLOAT16 = rule_for("torch", "bfloat16")


@pytest.fixture
def wanted(rng):
    return rng.standard_normal((4, 60, 8)).astype(np.float32)


def beside(rng, wanted, error):
    """The same numbers with a relative L2 error."""
    noise = rng.standard_normal(wanted.shape)
    return wanted + noise * (error * np.linalg.norm(wanted) / np.linalg.norm(noise))


@pytest.mark.parametrize(("times", "holds"), [(0.9, True), (2.9, True), (3.1, False), (50, False)])
def test_three_times_the_references_own_error_is_allowed(rng, wanted, times, holds):
    ours, theirs = beside(rng, wanted, times * 0.01), beside(rng, wanted, 0.01)
    stage = compare("layer.0", [Pair("a", ours, wanted)], BFLOAT16, [Pair("a", theirs, wanted)])
    assert stage.holds is holds
    assert stage.relative_l2 == pytest.approx(times * 0.01)
    assert stage.reference_error == pytest.approx(0.01)


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 10), ("bfloat16", 7)])
def test_the_least_error_is_what_one_rounding_leaves(rng, dtype, digits):
    """Numbers cut to so many binary digits after the first, to the nearest."""
    x = rng.standard_normal(100_000)
    unit = 2.0 ** (np.floor(np.log2(np.abs(x))) - digits)
    rounded = np.round(x / unit) * unit
    rule = rule_for("torch", dtype)
    assert isinstance(rule, Multiple)
    assert rule.least == pytest.approx(np.linalg.norm(rounded - x) / np.linalg.norm(x), rel=0.1)


def test_where_the_reference_rounds_nothing_three_roundings_are_allowed(rng, wanted):
    assert isinstance(BFLOAT16, Multiple)
    exact = [Pair("a", wanted, wanted)]
    near, far = beside(rng, wanted, 2.9 * BFLOAT16.least), beside(rng, wanted, 3.1 * BFLOAT16.least)
    assert compare("embeddings", [Pair("a", near, wanted)], BFLOAT16, exact).holds
    assert not compare("embeddings", [Pair("a", far, wanted)], BFLOAT16, exact).holds


def test_batches_of_few_values_are_judged_together(rng):
    """A single logit of the reference may be right by chance."""
    some, one = rng.standard_normal((40, 3)), rng.standard_normal((1, 3))
    ours = [Pair("some", some + 0.01, some), Pair("alone", one + 0.02, one)]
    own = [Pair("some", some + 0.01, some), Pair("alone", one, one)]
    stage = compare("logits", ours, BFLOAT16, own)
    assert (stage.holds, stage.batch, stage.values) == (True, "some, alone", 123)
    assert not compare("logits", [ours[0], Pair("alone", one + 1, one)], BFLOAT16, own).holds


def test_a_reference_that_is_not_finite_is_no_judge(wanted):
    stage = compare("layer.0", [Pair("a", wanted, wanted)], BFLOAT16, [Pair("a", wanted * np.inf, wanted)])
    assert (stage.holds, stage.note) == (False, "the reference itself: NaN or infinity, expected finite values")


def test_choices_that_the_rule_allows():
    assert isinstance(BFLOAT16, Multiple)
    assert BFLOAT16.allows(wrong=3 * 2 + 5, own=2, count=401)
    assert not BFLOAT16.allows(wrong=3 * 2 + 6, own=2, count=401)
    assert BFLOAT16.allows(wrong=2, own=0, count=48)
    assert not BFLOAT16.allows(wrong=3, own=0, count=48)
    assert not BFLOAT16.allows(wrong=2, own=0, count=4)


def test_the_largest_logits_are_held_against_the_references_own():
    """500 rows of close races: where 5 of the reference's choices differ, and 1 % may, 20 of zoo's may differ."""
    wanted = np.tile([1.0, 1.0, 1.001], (500, 1))
    other = np.tile([1.0, 1.002, 1.001], (500, 1))

    def pair(count):
        return Pair("a", np.concatenate([other[:count], wanted[count:]]), wanted)

    stages = [compare("logits", [pair(count)], BFLOAT16, [pair(5)]) for count in (20, 21)]
    assert [stage.holds for stage in stages] == [True, False]
    assert [stage.relative_l2 < 1e-3 for stage in stages] == [True, True]
    assert (stages[1].top1, stages[1].reference_top1) == (1 - 21 / 500, 0.99)


def test_other_pixels_and_other_texts_are_counted_against_the_references_own():
    wanted = np.arange(10_000) % 7
    ours, theirs = wanted.copy(), wanted.copy()
    ours[:390], theirs[:100] = 8, 8
    own = [Pair("a", theirs, wanted)]
    stage = compare_masks([Pair("a", ours, wanted)], BFLOAT16, own)
    assert (stage.holds, stage.top1, stage.reference_top1) == (True, 0.961, 0.99)
    ours[:410] = 8
    assert not compare_masks([Pair("a", ours, wanted)], BFLOAT16, own).holds
    texts = [[1, 2, 3], [4, 5], [6], [7, 8]]
    others = [[*row, 9] for row in texts]
    own = [("a", texts, texts)]
    found = [compare_ids([("a", others[:n] + texts[n:], texts)], "written", BFLOAT16, own) for n in (2, 3)]
    assert [stage.holds for stage in found] == [True, False]
    assert found[1].note == "3 of 4 rows differ from float32's, 0 of the reference's own"


def test_objects_without_a_partner_are_counted_against_the_references_own(rng):
    where = rng.uniform(0, 0.5, (100, 2))
    wanted = np.concatenate([np.tile([0, 0.5, 1], (100, 1)), where, where + 0.4], 1)
    own = [Pair("a", wanted[1:], wanted)]
    assert compare_objects([Pair("a", wanted[4:], wanted)], BFLOAT16, own).holds
    assert not compare_objects([Pair("a", wanted[5:], wanted)], BFLOAT16, own).holds


def test_a_gpu_multiplies_float32_as_such():
    torch = pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [flag.allow_tf32 for flag in flags]
    assert before[1]  # what torch has of itself, for convolutions
    with exact_products():
        assert [flag.allow_tf32 for flag in flags] == [False, False]
    assert [flag.allow_tf32 for flag in flags] == before


def mask_forgotten(model):
    attention = model.base_model.layers[0].attention
    model.base_model.layers[0].attention = lambda x, c, cache: attention(x, c._replace(mask=None), cache)


def norm_forgotten(model):
    model.base_model.layers[1].attention.norm = lambda x, residual: x + residual


def missing_bias(model):
    model.base_model.layers[2].down.bias = None


def layer_scale_forgotten(model):
    model.base_model.layers[1].lambda_2 = None


def heads_swapped(model):
    model.cls_classifier, model.distillation_classifier = model.distillation_classifier, model.cls_classifier


@pytest.mark.parametrize(
    ("name", "fault", "stage"),
    [
        ("bert-base-uncased", mask_forgotten, "layer.0"),
        ("bert-base-uncased", norm_forgotten, "layer.1"),
        ("bert-base-uncased", missing_bias, "layer.2"),
        ("beit-base-patch16-224", layer_scale_forgotten, "layer.1"),
        ("deit-base-distilled-patch16-224", heads_swapped, "logits"),
        ("llama-biases", gate_and_up_swapped, "layer.1"),
        ("Llama-3-8B", pairs_next_to_each_other, "layer.1"),
        ("Llama-3-8B", groups_in_turn, "layer.2"),
        ("Llama-3-8B", not_causal, "layer.0"),
    ],
)
def test_a_fault_is_found_in_bfloat16(bench, name, fault, stage):
    bench = bench(name, "bfloat16")
    model = bench.load()
    assert bench.first_wrong(model) is None
    fault(model)
    assert bench.first_wrong(model) == stage


def test_stages_in_bfloat16_are_not_those_in_float32(bench):
    """Both sides really compute in bfloat16."""
    bench = bench("bert-base-uncased", "bfloat16")
    stages = bench.stages(bench.load())
    assert all(stage.relative_l2 > 1e-3 for stage in stages)
    assert all(stage.reference_error > 1e-3 for stage in stages)
    assert [replace(stage, holds=True) for stage in stages] == stages
