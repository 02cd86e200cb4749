"""deploy/kubernetes.yaml has fields that Kubernetes knows, and says what `zoo serve` and the Dockerfile say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which huggingface_hub brings")

ROOT = Path(__file__).parent.parent
OBJECTS = [*yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())]
CLASSES = {
    "Deployment": "V1Deployment",
    "Service": "V1Service",
    "HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def checked(client: Any, kind: str, value: Any, where: str) -> None:
    """Assert that a value is of a type of the client's, as its OpenAPI description has it."""
    if inner := re.fullmatch(r"[lL]ist\[(.+)\]", kind):
        assert isinstance(value, list), where
        for i, item in enumerate(value):
            checked(client, inner[1], item, f"{where}[{i}]")
    elif inner := re.fullmatch(r"(?:dict\(|Dict\[).+?, (.+)[\])]", kind):
        assert isinstance(value, dict), where
        for key, item in value.items():
            checked(client, inner[1], item, f"{where}.{key}")
    elif kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), f"{where} is {value!r}, expected {kind}"
    elif kind == "object":  # a number or a text, such as a port's name
        assert isinstance(value, str | int), where
    else:
        model = getattr(client, kind)
        names = {shown: name for name, shown in model.attribute_map.items()}
        unknown = set(value) - set(names)
        assert not unknown, f"{where} has no {unknown}"
        for shown, item in value.items():
            checked(client, model.openapi_types[names[shown]], item, f"{where}.{shown}")
        model(**{names[shown]: item for shown, item in value.items()})  # ValueError: a required field is missing


@pytest.mark.parametrize("given", OBJECTS, ids=lambda one: one["kind"])
def test_an_object_is_one_of_kubernetes(given: dict[str, Any]):
    client = pytest.importorskip("kubernetes.client", reason="needs kubernetes, whose types are the API's")
    checked(client, CLASSES[given["kind"]], given, given["kind"])


def test_a_wrong_object_is_found():
    client = pytest.importorskip("kubernetes.client", reason="needs kubernetes, whose types are the API's")
    for wrong in ({"replica": 2}, {"replicas": "2"}, {"template": {}}):
        with pytest.raises((AssertionError, ValueError)):
            checked(client, "V1DeploymentSpec", wrong, "spec")


def test_the_container_is_what_zoo_serve_and_the_dockerfile_say():
    from zoo.apps.cli import _parse

    pod = OBJECTS[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args, _ = _parse(container["args"])
    (port,) = container["ports"]
    assert port["containerPort"] == args.port
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]
    assert pod["terminationGracePeriodSeconds"] >= 5 + args.timeout
    assert container["resources"]["limits"]["cpu"] == str(args.threads)
    docker = (ROOT / "Dockerfile").read_text()
    assert f"--uid {pod['securityContext']['runAsUser']} " in docker
    assert "VOLUME /models" in docker
    extras = re.search(r"EXTRAS=([\w,]+) ", (ROOT / "deploy" / "kubernetes.yaml").read_text())
    assert extras is not None
    for extra in extras[1].split(","):
        assert re.search(rf"(?m)^{extra} = \[", (ROOT / "pyproject.toml").read_text())


def test_probes_ask_paths_that_are_there():
    pytest.importorskip("prometheus_client", reason="needs the extra serve")
    from zoo.apps.serve.app import OPEN

    (container,) = OBJECTS[0]["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in OPEN  # the kubelet has no key
