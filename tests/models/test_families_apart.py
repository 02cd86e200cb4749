"""Classes refuse the checkpoints of a family that only inherits their config, and say how to begin a new head."""

from __future__ import annotations

import importlib

import pytest

from parity.checkpoints import build
from parity.specs import SPECS
from zoo.errors import MissingWeightError, UnsupportedError
from zoo.models.bert import BertModel
from zoo.models.electra import ElectraForSequenceClassification
from zoo.models.roberta import RobertaModel
from zoo.registry import FAMILIES


@pytest.fixture(scope="module")
def electra(tmp_path_factory):
    return build("electra-small-discriminator", tmp_path_factory.mktemp("electra"))


def test_a_family_whose_config_inherits_berts_is_not_bert(electra):
    with pytest.raises(UnsupportedError, match="model_type is 'electra', and BertModel is not of that family"):
        BertModel.from_pretrained(electra)


def test_a_family_of_the_same_folder_is_read(tmp_path):
    assert RobertaModel.from_pretrained(build("xlm-roberta-base", tmp_path)).config.model_type == "xlm-roberta"


def test_a_head_that_is_not_there_may_be_new(electra):
    with pytest.raises(MissingWeightError, match=r"'classifier\.dense\.weight' \(new_head=True would draw"):
        ElectraForSequenceClassification.from_pretrained(electra)


BORROWED = {
    family.architecture(head): model_type
    for model_type, family in FAMILIES.items()
    if family.classes
    for head in family.heads
}


@pytest.mark.parametrize("name", BORROWED)
def test_borrowed_classes_have_the_names_of_transformers(name, tmp_path):
    """They read the checkpoints of their own family, and say what they are."""
    family = FAMILIES[BORROWED[name]]
    cls = getattr(importlib.import_module(family.module), name)
    spec = next(n for n, s in SPECS.items() if s.architecture == name)
    model = cls.from_pretrained(build(spec, tmp_path))
    assert model.architecture == name
    assert model.config.model_type == BORROWED[name]


def test_a_package_says_which_classes_it_does_not_have():
    with pytest.raises(ImportError, match="MistralForMaskedLM"):
        from zoo.models.mistral import MistralForMaskedLM  # noqa: F401
