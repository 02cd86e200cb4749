"""The type hints: options by name, results by task, the options' fields."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from checks import signatures
from zoo import hub
from zoo.keywords import LoadOptions, ModelOptions
from zoo.models.bert import BertForSequenceClassification
from zoo.models.llama3 import LlamaForCausalLM
from zoo.options import MODEL, Options

RIGHT = """
import numpy as np
import zoo
from zoo.models.bert import BertModel

model = BertModel.from_pretrained("a", device="torch:cpu")
print(model(np.zeros((1, 3), np.int64)).last_hidden_state.shape)
boxes = [one.box for one in zoo.load("b", task="detect")("page.png", threshold=0.7)]
print(zoo.load("c", task="tag")("A text.")[0].label, zoo.load("c", task="tag")(["A text."])[0][0].start)
print(zoo.load("d", task="generate", local_files_only=True)("Once", top_k=3).upper())
vectors = zoo.load("e", task="embed")(["A text."])
print(zoo.load("e").anything())
print(zoo.load("f", task="ner")("A text.")[0].label, zoo.load("f", task="image-to-text").processor)
"""
WRONG = [
    'zoo.load("a", devcie="cuda")',
    'zoo.load_model("a", devcie="cuda")',
    'BertModel.from_pretrained("a", devcie="cuda")',
    'zoo.load("a", task="generate")("Once", top_kk=3)',
    'zoo.load("a", task="detect")("page.png").boxes',
    'zoo.load("a", task="tag")("A text.")[0].lable',
    'zoo.load("a", task="rerank")(1, ["A text."])',
    "zoo.load(3)",
    'BertModel.from_pretrained("a")("a text")',
]


@pytest.mark.slow
def test_a_type_checker_takes_what_is_right_and_nothing_else(tmp_path):
    pytest.importorskip("pyright", reason="needs pyright")
    head = "import zoo\nfrom zoo.models.bert import BertModel\n"
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(head + "\n".join(WRONG) + "\n")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "right.py", "wrong.py"]
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{Path(__file__).parents[1].as_posix()}"]}}')
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600).stdout
    assert "right.py:" not in said, said
    for i, line in enumerate(WRONG, 3):
        assert f"wrong.py:{i}:" in said, f"{line} passes:\n{said}"


@pytest.mark.parametrize(
    ("path", "text"), [(signatures.KEYWORDS, signatures.keywords), (signatures.STUB, signatures.stub)]
)
def test_what_type_checkers_read_is_said_by_dataclasses_and_the_table_of_tasks(path, text):
    pytest.importorskip("ruff", reason="needs ruff, which formats what is compared")
    assert path.read_text(encoding="utf-8") == text(), "run: python -m checks.signatures"


def test_keywords_are_all_options():
    assert LoadOptions.__annotations__.keys() == {field.name for field in dataclasses.fields(Options)}
    assert ModelOptions.__annotations__.keys() == set(MODEL)


def test_dir_names_all_that_zoo_has():
    assert set(zoo.__all__) <= set(dir(zoo))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: zoo.load("stories260k", devcie="cpu"), "devcie"),
        (lambda: zoo.load_model("stories260k", graphs=False), "graphs"),
        (lambda: LlamaForCausalLM.from_pretrained("stories260k", graphs=False), "graphs"),
        (lambda: hub.find("stories260k", device="cpu"), "device"),
        (lambda: zoo.export("stories260k", "out", trainable=True), "trainable"),
    ],
)
def test_an_option_that_would_do_nothing_is_an_error(call, name):
    with pytest.raises(TypeError, match=f"'{name}' is not an option here"):
        call()


def test_from_pretrained_takes_the_options_of_heads(minilm):
    with pytest.warns(UserWarning, match="drawn at random"):
        model = BertForSequenceClassification.from_pretrained(minilm, num_labels=3)
    assert len(model.config.id2label) == 3
