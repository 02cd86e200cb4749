"""Arguments by their names in transformers' pipelines, and the messages about names that no task has."""

from __future__ import annotations

import enum
import inspect

import pytest

import zoo
from zoo.errors import InputError
from zoo.tasks import Classify, Tag, Text2Text, Transcribe
from zoo.tasks.pipeline_names import own_options, with_pipeline_names


class Strategy(enum.Enum):
    """As transformers' AggregationStrategy."""

    MAX = "max"


class Task:
    name = "tag"

    @with_pipeline_names
    def __call__(self, texts, *, aggregation="simple", ignore=("O",)):
        return texts, aggregation, ignore


class Writer:
    name = "text2text-generation"

    @with_pipeline_names
    def __call__(self, texts, *, prefix=None, **generation):
        return texts, prefix, generation


def test_names_are_those_of_the_task():
    task = Task()
    assert task("a") == task(inputs="a") == task(sequences="a") == ("a", "simple", ("O",))
    assert task("a", aggregation_strategy="FIRST", ignore_labels=[]) == ("a", "first", [])
    assert task("a", aggregation_strategy=Strategy.MAX)[1] == "max"
    assert task("a", aggregation_strategy=None)[1] == "none"  # transformers' default
    assert task("a", batch_size=8, num_workers=2, padding=True, truncation=True) == task("a")
    assert Writer()("a", generate_kwargs={"num_beams": 2, "prefix": "b"}) == ("a", "b", {"num_beams": 2})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agregation": "max"}, r"has no option 'agregation', expected one of aggregation, ignore; did you mean"),
        ({"aggregation_stategy": "max"}, "did you mean 'aggregation_strategy'"),
        ({"aggregation": "max", "aggregation_strategy": "max"}, "are one option of tag"),
        ({"truncation": False}, "truncation is False: what is longer than the checkpoint takes is cut"),
        ({"return_tensors": True}, "results are texts and arrays"),
    ],
)
def test_other_names_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Task()("a", **options)
    with pytest.raises(InputError, match="are one option"):
        Task()(texts="a", inputs="b")


def test_options_that_a_task_checks_itself():
    assert own_options("x", {"num_beams": 2}, ["texts"], True) == {"num_beams": 2}
    assert list(inspect.signature(Tag.__call__).parameters)[:3] == ["self", "texts", "aggregation"]
    for task in (Classify, Text2Text, Transcribe):
        assert task.__call__.__doc__


def test_a_language_model_continues():
    llm = zoo.load("stories260k")
    wanted = llm("Once upon a time", max_new_tokens=4)
    assert llm(text_inputs="Once upon a time", max_new_tokens=4, return_full_text=False, batch_size=2) == wanted
    with pytest.raises(InputError, match="the result is the continuation alone"):
        llm("Once", return_full_text=True)
