"""Ray Serve: replicas of the application on the machines of a cluster, or on this one alone."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import InputError, ZooError
from ...optional import import_optional
from ..batch.on_ray import start_ray
from .listening import address_of, listen
from .models import Models

APP = "zoo"  # its name in Ray, and its deployment's


def serve_on_ray(
    names: Sequence[str],
    settings: Mapping[str, Any],
    host: str,
    port: int,
    ready: Callable[[str], None],
    **options: Any,
) -> None:
    """Serve until Ctrl-C or SIGTERM, after which what runs is finished; arguments as of `deploy`."""
    ray = import_optional("ray", "the engine ray", "ray")
    ended = threading.Event()
    own = not ray.is_initialized()
    if own:
        start_ray(ray)
    try:
        address = deploy(names, settings, host, port, **options)
        before = {one: signal.signal(one, lambda *_: ended.set()) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            ready(address)
            ended.wait()
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
    finally:
        import_optional("ray.serve", "the engine ray", "ray").shutdown()
        if own:
            ray.shutdown()


def deploy(
    names: Sequence[str],
    settings: Mapping[str, Any],
    host: str,
    port: int,
    *,
    replicas: int | None = None,
    autoscaling: Mapping[str, Any] | None = None,
    threads: int = 1,
    gpu: bool = False,
    log: tuple[str, str] = ("info", "text"),
    **options: Any,
) -> str:
    """Start replicas in the Ray that runs, wait until they answer -> their address.

    settings: of `Models`.  autoscaling: Ray Serve's `autoscaling_config`, in place of a number of replicas.
    threads: CPUs of a replica.  gpu: whether each has one.  log: its level and format.  options: of `application`.
    port: 0 takes a free one.  Each replica loads its models before it gets requests.  A request on its way to a replica
    that dies goes to another one; those that it computes end with status 500.  ZooError: Ray refuses, or no model can
    be loaded.
    """
    serve = import_optional("ray.serve", "the engine ray", "ray")
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with listen(host, port) as at:  # Ray's error for a port in use would come late, and be long
        address, port = address_of(host, at), at.getsockname()[1]
    models = Models(names, **settings)
    if autoscaling is not None and replicas is not None:
        raise InputError("a number of replicas and autoscaling exclude each other")

    def application_of_replica() -> Any:
        from .app import application
        from .logs import configure_log

        configure_log(*log)
        own = Models(names, **settings)
        own.load()
        if own.has_failed:
            raise ZooError("; ".join(own.unready_models))
        return application(own, host=host, **options)

    scaled: dict[str, Any] = {"num_replicas": replicas or 1}
    if autoscaling is not None:
        scaled = {"autoscaling_config": dict(autoscaling)}
    try:
        made = serve.deployment(
            serve.ingress(application_of_replica)(),
            name=APP,
            max_ongoing_requests=models.queue + models.rows,
            graceful_shutdown_timeout_s=models.seconds,
            max_constructor_retry_count=1,
            ray_actor_options={"num_cpus": threads, "num_gpus": int(gpu)},
            **scaled,
        ).bind()
    except (ValueError, TypeError) as e:
        raise InputError(f"Ray Serve refuses these settings: {' '.join(str(e).split())[:500]}") from None
    if serve.status().proxies:
        raise InputError("Ray Serve runs already in this Ray, at a port of its own: end it before (serve shutdown)")
    try:
        serve.start(http_options={"host": host, "port": port})
        serve.run(made, name=APP, route_prefix="/")
    except Exception as e:  # Ray raises many kinds, the plain one among them
        said = _failure_reasons(serve) or str(e)
        serve.shutdown()
        raise ZooError(f"no replica could be started: {' '.join(said.split())[:500]}") from None
    return address


def _failure_reasons(serve: Any) -> str:
    """The reasons why no replica could be started: zoo's errors in Ray's report."""
    found = [one.message for app in serve.status().applications.values() for one in app.deployments.values()]
    lines = [line for message in found for line in message.splitlines() if "zoo.errors." in line]
    return lines[-1].rpartition("zoo.errors.")[2] if lines else " ".join(found)
