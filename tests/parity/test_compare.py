"""The judge: what counts as different, and what is not looked at."""

from __future__ import annotations

import numpy as np
import pytest

from parity.choices import compare_ids
from parity.compare import FLOAT32, Pair, compare, rule_for
from parity.stages import compare_stages, judge_by_float64, needs_float64
from parity.texts import Batch
from zoo.errors import UnsupportedError


@pytest.fixture
def states(rng):
    return rng.standard_normal((3, 5, 8)).astype(np.float32)


MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)


def test_figures_are_those_of_their_definitions(states):
    other = states * np.float32(1.001)
    other[0, 0, 0] += np.float32(0.5)
    stage = compare("layer.0", [Pair("padded", other, states)], FLOAT32)
    a, b = other.astype(float), states.astype(float)
    assert stage.max_abs == np.abs(a - b).max()
    assert stage.relative_l2 == pytest.approx(np.linalg.norm(a - b) / np.linalg.norm(b), rel=1e-12)
    assert stage.cosine == pytest.approx((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-12)
    assert stage.values == states.size
    assert not stage.holds


@pytest.mark.parametrize(("factor", "holds"), [(1 + 5e-6, True), (1 + 5e-5, False)])
def test_relative_l2_is_judged(states, factor, holds):
    assert compare("layer.0", [Pair("a", states * np.float64(factor), states)], FLOAT32).holds is holds


@pytest.mark.parametrize(("factor", "holds"), [(1 + 5e-6, True), (1 + 5e-5, False)])
def test_what_both_hide_is_not_compared(states, factor, holds):
    ours, theirs = states * np.float64(factor), states.copy()
    ours[0, :, 3:] = theirs[0, :, 3:] = -np.inf
    assert compare("logits", [Pair("a", ours, theirs)], FLOAT32).holds is holds
    ours[0, 0, 3] = 0
    assert "infinity" in compare("logits", [Pair("a", ours, theirs)], FLOAT32).note


def test_one_wrong_value_among_many_is_found_by_max_abs(rng):
    theirs = rng.standard_normal((1, 512, 768)).astype(np.float32)
    ours = theirs.copy()
    ours[0, 77, 5] += 2e-4
    stage = compare("layer.0", [Pair("a", ours, theirs)], FLOAT32)
    assert stage.relative_l2 < FLOAT32.relative_l2
    assert not stage.holds


@pytest.fixture
def massive(rng):
    """Two stages of a trained model's stream: one channel of one token is at 505, and at 3 again after the last layer.

    The error of that channel is as large, in every token, as what makes 505 of one of them leaves it.
    """
    theirs = rng.standard_normal((1, 197, 192)).astype(np.float32)
    last = theirs + np.float32(0.5)
    theirs[0, :, 7] *= 3
    theirs[0, 3, 7] = 505
    noise = 1e-6 * rng.standard_normal(theirs.shape)
    noise[..., 7] *= 400
    return [(theirs + noise, theirs), (last + noise, last)]


def compared(stages):
    found = [{f"layer.{i}": side[k] for i, side in enumerate(stages)} for k in (0, 1)]
    return compare_stages([Batch("a", {})], [found[0]], [found[1]], FLOAT32)


def test_a_massive_channel_is_judged_by_its_own_size(massive):
    assert max(np.abs(a - b).max() / np.sqrt((b**2).mean()) for a, b in massive) > 3 * FLOAT32.max_abs
    assert [stage.holds for stage in compared(massive)] == [True, True]
    stage = compare("layer.1", [Pair("a", *massive[1])], FLOAT32)
    assert not stage.holds, "nothing tells that this channel was massive"


def test_a_fault_is_found_beside_massive_values(massive):
    """2e-5 of all other values, which is less than 1e-5 of a scale that the massive ones make."""
    ours, theirs = massive[0]
    theirs[..., :3] += np.float32(200)
    wrong = ours + 2e-5 * theirs * (np.abs(theirs) < 100)
    wrong[..., :3] += 200
    assert np.linalg.norm(wrong - theirs) / np.linalg.norm(theirs) < FLOAT32.relative_l2
    assert not compared([(wrong, theirs)])[0].holds
    massive[1][0][0, 3, 7] += 0.3
    assert [stage.holds for stage in compared([(ours, massive[0][1]), massive[1]])][1] is False


def test_half_of_the_values_are_not_massive(rng):
    """Many large values are the scale: so too where nearly all are 0, as after a relu, or all but one."""
    theirs = rng.standard_normal((40, 50)) * np.where(np.arange(50) % 2, 1000, 1)
    assert compare("layer.0", [Pair("a", theirs, theirs)], FLOAT32).scale == pytest.approx(700, rel=0.05)
    assert not compare("layer.0", [Pair("a", theirs * (1 + 2e-5), theirs)], FLOAT32).holds
    one = np.zeros((40, 50))
    one[3, 4] = 7
    assert compare("features", [Pair("a", one, one)], FLOAT32).holds
    assert not compare("features", [Pair("a", one * 1.01, one)], FLOAT32).holds


def test_padding_is_not_compared(states):
    other = states.copy()
    other[~MASK] = np.nan
    assert compare("layer.0", [Pair("padded", other, states, MASK)], FLOAT32).holds
    other[1, 2] += 1
    assert not compare("layer.0", [Pair("padded", other, states, MASK)], FLOAT32).holds


def test_padding_is_found_in_start_logits_and_not_in_classes(states):
    logits = states[:, :, 0]
    other = logits.copy()
    other[~MASK] += 9
    assert compare("start_logits", [Pair("padded", other, logits, MASK)], FLOAT32).holds
    assert not compare("logits", [Pair("padded", other, logits, MASK)], FLOAT32).holds


def test_the_worst_batch_is_named_and_a_single_small_logit_is_not_judged_by_itself():
    big, small = np.array([[3.0], [-2.0]]), np.array([[1e-4]])
    stage = compare("logits", [Pair("two", big, big), Pair("alone", small + 1e-8, small)], FLOAT32)
    assert (stage.batch, stage.holds, stage.top1) == ("alone", True, None)
    assert not compare("logits", [Pair("two", big, big), Pair("alone", small + 1e-3, small)], FLOAT32).holds


def test_zeros_alone_prove_nothing():
    """As of a depth behind a ReLU that lets nothing pass, whatever the model computed before."""
    zeros = np.zeros((2, 3))
    assert "nothing is compared" in compare("logits", [Pair("a", zeros, zeros)], FLOAT32).note
    assert compare("logits", [Pair("a", zeros, zeros), Pair("b", zeros + 1, zeros + 1)], FLOAT32).holds
    assert not compare("logits", [Pair("a", zeros + 1e-9, zeros)], FLOAT32).holds


def test_top1_counts_rows_with_the_same_largest_value(states):
    other = states.copy()
    other[0, 0, other[0, 0].argmin()] = 99
    other[2, 4, other[2, 4].argmin()] = 99  # padding
    stage = compare("logits", [Pair("padded", other, states, MASK)], FLOAT32)
    assert stage.top1 == pytest.approx(8 / 9)
    pairs = compare("order_logits", [Pair("padded", other, states, MASK)], FLOAT32)
    assert pairs.top1 is None  # whose rows choose nothing


@pytest.mark.parametrize(
    ("ours", "note"),
    [(None, "only transformers has"), (np.zeros((2, 2)), "shape"), (np.full((2, 3), np.nan), "NaN or infinity")],
)
def test_what_cannot_be_compared_does_not_hold(ours, note):
    stage = compare("logits", [Pair("a", ours, np.ones((2, 3)))], FLOAT32)
    assert not stage.holds
    assert note in stage.note


def test_ids_must_be_the_same():
    same = compare_ids([("a", [[1, 2, 3]], [[1, 2, 3]])])
    other = compare_ids([("a", [[1, 2, 3], [4]], [[1, 2, 3], [4, 5]])])
    assert (same.holds, same.top1) == (True, 1.0)
    assert (other.holds, other.top1) == (False, 0.5)
    assert "1 of 2 rows differ; the first at token 1: [], expected [5]" in other.note


def test_low_precision_on_numpy_is_refused():
    with pytest.raises(UnsupportedError, match=r"bfloat16 needs torch or OpenVINO, .* add --device torch:cpu, "):
        rule_for("numpy", "bfloat16")
    with pytest.raises(UnsupportedError, match="no rule is set for int8 on torch, only for float32, float16, bfloat16"):
        rule_for("torch", "int8")


@pytest.mark.parametrize("columns", [4, 9])
def test_logits_over_other_columns_than_the_text(columns, rng):
    """Of a page's words and patches, or of a text's words alone: the mask of tokens says nothing of these."""
    theirs = rng.standard_normal((3, columns)).astype(np.float32)
    same = compare("start_logits", [Pair("padded", theirs.copy(), theirs, MASK)], FLOAT32)
    assert (same.holds, same.top1, same.values) == (True, 1.0, theirs.size)
    other = np.roll(theirs, 1, axis=1)
    assert not compare("end_logits", [Pair("padded", other, theirs, MASK)], FLOAT32).holds


@pytest.mark.parametrize(
    ("error", "spike", "holds"),
    [(2.9, 0, True), (3.1, 0, False), (1, 5, True), (1, 7, False)],
)
def test_float64_judges_what_the_fixed_limits_call_different(rng, error, spike, holds):
    """error, spike: zoo's error, and its largest of one value, in multiples of the reference's own in float32."""
    exact = rng.standard_normal((4, 60, 50))
    noise = rng.standard_normal((2, *exact.shape))
    own = 2e-5 * noise[0]
    theirs, ours = exact + own, exact + 2e-5 * error * noise[1] / np.linalg.norm(noise[1]) * np.linalg.norm(noise[0])
    if spike:
        ours.flat[0] = exact.flat[0] + spike * np.abs(own).max()
    batch = Batch("a", {})
    sides = [[{"layer.0": array.astype(np.float64)}] for array in (ours, exact, theirs)]
    stages = compare_stages([batch], sides[0], sides[2], FLOAT32)
    assert [needs_float64(stage) for stage in stages] == [True]
    (stage,) = judge_by_float64(stages, [batch], *sides)
    assert stage.holds is holds
    assert stage.reference_error == pytest.approx(2e-5, rel=0.05)
    assert "to float64" in stage.note


def test_float64_does_not_judge_what_holds_and_shows_it_where_asked(rng):
    exact = rng.standard_normal((4, 60, 50))
    batch, sides = Batch("a", {}), [[{"layer.0": exact}]] * 3
    stages = compare_stages([batch], sides[0], sides[2], FLOAT32)
    assert judge_by_float64(stages, [batch], *sides) == stages
    (stage,) = judge_by_float64(stages, [batch], *sides, every=True)
    assert (stage.holds, stage.note) == (
        True,
        "to float64 0.0e+00, transformers 0.0e+00; of one value 0.0e+00, 0.0e+00",
    )
