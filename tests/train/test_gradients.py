"""`zoo parity --gradients`: it holds for zoo as it is, and does not for what cuts or bends a gradient."""

from __future__ import annotations

import json

import numpy as np
import pytest

from parity.__main__ import main
from parity.cases import Case
from parity.gradients import has_loss, run_gradients
from zoo import nn, ops
from zoo.errors import InputError, UnsupportedError, ZooError

torch = pytest.importorskip("torch", reason="gradients are torch's")
pytest.importorskip("transformers", reason="needs transformers, the reference")

# The other heads are compared by the same command where changes are checked: --all.
SPECS = ["bert-pretraining", "roberta-base-squad2", "trocr-beit", "table-transformer-learned-positions", "llama-tagger"]


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_those_of_transformers(spec):
    result = run_gradients(Case(f"random:{spec}", "tiny"))
    assert result.holds, result.first_divergence
    assert result.stages[0].name == "loss"
    assert len(result.stages) > 20
    assert max(stage.relative_l2 for stage in result.stages) <= 1e-5


def test_the_command(tmp_path, capsys):
    assert main(["random:bert-emotion", "--gradients", "--json", str(tmp_path / "out.json")]) == 0
    assert "1 of 1 hold" in capsys.readouterr().out
    assert "classifier.bias" in json.dumps(json.loads((tmp_path / "out.json").read_text()))
    assert main(["random:bert-emotion", "--gradients", "--dtype", "bfloat16"]) == 2
    assert "leave out --dtype" in capsys.readouterr().err
    assert not has_loss(Case("random:bge-m3", "tiny"))


def cut(monkeypatch):
    own = nn.LayerNorm.__call__
    monkeypatch.setattr(nn.LayerNorm, "__call__", lambda self, x, residual=None: own(self, x.detach(), residual))


def bent(monkeypatch):
    own = ops.linear
    monkeypatch.setattr(ops, "linear", lambda x, *rest: own(x, *rest) + 1e-4 * (x - x.detach()).sum())


def stale(monkeypatch):
    own = nn.Linear.__call__
    monkeypatch.setattr(nn.Linear, "__call__", lambda self, x, residual=None: own(_copied(self), x, residual))


def _copied(linear):
    import copy

    found = copy.copy(linear)
    if not isinstance(linear.weight, tuple):
        found.weight = linear.weight.detach()
    return found


@pytest.mark.parametrize("fault", [cut, bent, stale])
def test_what_cuts_or_bends_a_gradient_diverges(fault, monkeypatch):
    fault(monkeypatch)
    result = run_gradients(Case("random:bert-emotion", "tiny"))
    assert result.stages[0].holds  # the loss is right
    assert result.first_divergence is not None


def test_labels_that_do_not_fit(made):
    import zoo
    from zoo.apps.train import compute_loss

    ids = np.array([[5, 6, 7]])
    model = zoo.load_model(made("bert-emotion"), device="torch:cpu", trainable=True)
    with pytest.raises(InputError, match=r"labels are in 99 ... 99, expected 0 ... 5"):
        compute_loss(model, {"input_ids": ids}, [99])
    with pytest.raises(InputError, match="2 labels for 1"):
        compute_loss(model, {"input_ids": ids}, [1, 2])
    with pytest.raises(InputError, match=r"labels have shape \(1, 2\), expected \(1, 6\)"):
        compute_loss(model, {"input_ids": ids}, [[0.5, 1.0]])
    with pytest.raises(UnsupportedError, match="BertModel has no loss"):
        compute_loss(zoo.load_model(made("bert-emotion"), head="Model", device="torch:cpu"), {"input_ids": ids}, [0])
    table = zoo.load_model(made("table-transformer-detection"), device="torch:cpu", trainable=True)
    pixels = np.zeros((1, 64, 64, 3), np.float32)
    with pytest.raises(InputError, match=r"labels\[0\]: expected class_labels"):
        compute_loss(table, {"pixel_values": pixels}, [{"class_labels": [7], "boxes": [[0.5, 0.5, 0.1, 0.1]]}])


def test_where_transformers_has_nan_in_float64_both_compute_in_float32(monkeypatch):
    from parity import gradients

    own = gradients._reference_gradients
    monkeypatch.setattr(
        gradients, "_reference_gradients", lambda r, *rest: None if r.dtype == torch.float64 else own(r, *rest)
    )
    result = run_gradients(Case("random:bert-emotion", "tiny"))
    assert (result.dtype, result.holds, result.stages[0].name) == ("float32", True, "loss")
    monkeypatch.setattr(gradients, "_reference_gradients", lambda *_: None)
    with pytest.raises(ZooError, match="BertForSequenceClassification's loss"):
        run_gradients(Case("random:bert-emotion", "tiny"))
