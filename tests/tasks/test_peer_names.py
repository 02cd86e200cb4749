"""What users of other libraries type by habit: it works, or the message says what to type."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo import peer_names
from zoo.apps.tables import Table
from zoo.errors import InputError, OfflineError
from zoo.images.boxes import Detection
from zoo.options import DEFAULTS
from zoo.tasks.base import Task
from zoo.tasks.classify import Label
from zoo.tasks.tag import Entity


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """`load(spec, **options)`: the task of a random checkpoint, whose folder is made once."""
    home, made = tmp_path_factory.mktemp("peers"), {}

    def of(spec, **options):
        if spec not in made:
            made[spec] = build(spec, home / spec)
        return zoo.load(made[spec], **options)

    return of


def test_fields_are_keys():
    entity = Entity("PER", 0.9, "Angela", 0, 6)
    assert entity["label"] == entity["entity_group"] == entity["entity"] == entity.label == entity[0] == "PER"
    assert entity["word"] == entity.text
    assert entity[1:3] == (0.9, "Angela")
    assert dict(entity) == entity._asdict()
    assert {**Label("a", 0.5)} == {"label": "a", "score": 0.5}
    assert Detection("table", 0.5, (1, 2, 3, 4))["box"] == (1, 2, 3, 4)
    with pytest.raises(KeyError, match=r"Entity has no field 'lable', expected .*did you mean 'label'"):
        entity["lable"]
    with pytest.raises(AttributeError, match="Entity has no field 'word'; the field is called 'text'"):
        entity.word  # noqa: B018
    assert pickle.loads(pickle.dumps(entity)) == copy.deepcopy(entity) == entity


def test_pipelines_pairs(load):
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    classify, answer = load("twitter-roberta-base-sentiment"), load("bert-base-squad2")
    pair = {"text": "a man sleeps", "text_pair": "it rains"}
    wanted = classify("a man sleeps", pairs="it rains")
    assert classify(pair) == wanted
    assert classify([pair, pair]) == classify(["a man sleeps"] * 2, pairs=["it rains"] * 2)
    assert classify({"text": "a man sleeps"}) == classify("a man sleeps")
    asked = {"question": "who?", "context": "a man sleeps"}
    assert answer(asked) == answer(**asked)
    assert answer([asked, asked]) == answer(["who?"] * 2, ["a man sleeps"] * 2)
    with pytest.raises(InputError, match="context is missing"):
        answer("who?")


def test_options_of_cross_encoders(load):
    rerank, pairs = load("ms-marco-MiniLM-L6-v2"), [("a", "some water"), ("a", "the town")]
    scores = rerank.predict(pairs)
    np.testing.assert_array_equal(
        rerank.predict(pairs, batch_size=8, show_progress_bar=False, convert_to_numpy=True, activation_fn=None), scores
    )
    assert rerank.predict(pairs[0]).shape == ()
    np.testing.assert_allclose(rerank.predict(pairs[0]), scores[0], rtol=1e-6)
    assert rerank("a", ["some water", "the town"], top_n=1) == rerank("a", ["some water", "the town"], top_k=1)
    with pytest.raises(InputError, match="apply_softmax is True: raw=True gives the logits"):
        rerank.predict(pairs, apply_softmax=True)
    with pytest.raises(InputError, match="max_length is 512: set max_tokens"):
        rerank("a", ["b"], max_length=512)


def test_attributes_of_other_libraries(load):
    pytest.importorskip("torch", reason="needs torch, to write a .bin file")
    task = load("twitter-roberta-base-sentiment")
    for name in peer_names.TASK_NAMES.keys() - set(dir(task)):
        with pytest.raises(AttributeError, match=f"the task classify has no attribute '{name}': "):
            getattr(task, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        task.nonsense  # noqa: B018
    for name in peer_names.MODULE_NAMES:
        with pytest.raises(AttributeError, match=f"module 'zoo' has no attribute '{name}': "):
            getattr(zoo, name)
    for name in peer_names.TABLE_NAMES:
        with pytest.raises(AttributeError, match=f"a table has no attribute '{name}': "):
            getattr(Table(cells=(), row_boxes=(), column_boxes=(), box=(0, 0, 1, 1)), name)
    assert not hasattr(Task, "device")


@pytest.mark.parametrize(("given", "device"), [(-1, "cpu"), (0, "cuda:0"), (1, "cuda:1"), ("cpu", "cpu")])
def test_devices_by_number(given, device):
    assert DEFAULTS.update({"device": given}).device == device


@pytest.mark.parametrize("given", ["fp16", "half", "float16", np.float16, np.dtype("float16"), "torch.float16"])
def test_names_of_types(given):
    assert DEFAULTS.update({"dtype": given}).dtype == "float16"


def test_options_of_other_loaders():
    needless = {"trust_remote_code": False, "load_in_8bit": False, "device_map": None}
    assert DEFAULTS.update(needless) == DEFAULTS
    for name, (_, instead) in peer_names.LOAD_OPTIONS.items():
        with pytest.raises(TypeError) as caught:
            DEFAULTS.update({name: "something"})
        assert str(caught.value) == f"{name!r} is not an option here: {instead}"
    with pytest.raises(TypeError, match="trust_remote_code"):
        DEFAULTS.update({"trust_remote_code": True})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ner", r"'ner' is the name of a task: give it as zoo.load\(NAME, task='ner'\)"),
        ("all-MiniLM-L6-v2", "did you mean 'sentence-transformers/all-MiniLM-L6-v2'"),
        ("large-v3", "did you mean 'openai/whisper-large-v3'"),
    ],
)
def test_names_without_an_organisation(name, says, tmp_path):
    with pytest.raises(OfflineError, match=says):
        zoo.load(name, cache_dir=tmp_path, local_files_only=True)


def test_options_of_other_generators():
    llm = zoo.load("stories260k")
    for name, instead in peer_names.GENERATION_NAMES.items():
        with pytest.raises(InputError) as caught:
            llm("Once", **{name: 5})
        assert str(caught.value) == f"{name} is not an option of generation: {instead}"
    with pytest.raises(InputError, match=r"chat\(messages\) answers them"):
        llm([{"role": "user", "content": "Hello"}])
    with pytest.raises(InputError, match="a list of messages such as"):
        llm.chat("Hello")


def test_options_of_table_libraries():
    for options in ({"flavor": "lattice"}, {"stream": True}, {"borderless_tables": True}):
        with pytest.raises(TypeError, match=f"'{next(iter(options))}' is not an option here: a table's rules are"):
            zoo.extract_tables("report.pdf", **options)
    extract = zoo.TableExtractor(ocr="none")
    with pytest.raises(TypeError, match=r"'password' is not an option here: .*open_document\(path"):
        extract("report.pdf", password="1234")
    with pytest.raises(TypeError, match=r"'treshold' is not an option here; did you mean 'threshold'\?: expected"):
        zoo.TableExtractor(treshold=0.5)
