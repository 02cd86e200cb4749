"""examples/mnist.py: three models of digits learn, and run on NumPy as on torch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("sklearn", reason="needs scikit-learn, whose digits are learned")

PATH = Path(__file__).parents[2] / "examples" / "mnist.py"


@pytest.fixture(scope="module")
def mnist():
    spec = importlib.util.spec_from_file_location("mnist", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mnist"] = module
    spec.loader.exec_module(module)
    return module


# A guess is right once in ten; a model that learns nothing of place stays below 0.9.
@pytest.mark.parametrize(("name", "least"), [("linear", 0.94), ("mlp", 0.96), ("cnn", 0.97)])
def test_digits_are_learned(name, least, mnist):
    result = mnist.train(name, mnist.digits(offline=True), steps=400)
    assert result.accuracy >= least
    untrained = mnist.train(name, mnist.digits(offline=True), steps=0)
    assert untrained.accuracy < 0.4


def test_the_program_prints_a_table(mnist, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mnist.py", "linear", "mlp", "--steps", "20"])
    mnist.main()  # the tests' hub is off: it says so, and takes what is bundled
    lines = capsys.readouterr().out.splitlines()
    assert "1438 to train on, 359 to test on" in "\n".join(lines)
    assert [line.split("|")[1].strip() for line in lines[-2:]] == ["linear", "mlp"]
