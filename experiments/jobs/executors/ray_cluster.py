"""Tasks on a Ray cluster: the one that RAY_ADDRESS names, or one of its own on this machine.

A task is one of Ray Core: all that it takes is on one node. A task of several processes that no node has room for is
given a placement group instead, which is packed on few nodes. If a node is lost its tasks begin again on others,
however often; if only a worker dies, its task is tried ATTEMPTS times.
"""

import contextlib
import logging
import os
import queue
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores, naming_extra
from lakewright.experiments.jobs.executors.executor import (
    AT_ONCE,
    ATTEMPTS,
    DIED,
    ClusterLostError,
    NodeLostError,
    Task,
    WorkerDiedError,
)
from lakewright.experiments.jobs.executors.node import Home, enter_node, mark_home
from lakewright.experiments.jobs.executors.ray_group import count_room, divide_task, place_in

GIGABYTE = 10**9
NAMESPACE = "lakewright"
PATIENCE = 20.0  # seconds in which a head that is gone may return, and tasks that are cancelled end
LET_GO = 20.0  # seconds in which Ray notices that a driver was killed
INTERVAL = 2.0  # seconds between two looks at the head
GROUPS_AT_ONCE = 256  # placement groups, of which the head tries each that waits again and again
OVER, LOST = "over", "its head does not answer"
A = TypeVar("A")
R = TypeVar("R")


class SubmittedTask(NamedTuple):
    """A task that was submitted. deaths: how many of its workers died. group: its placement group, if it has one."""

    function: Callable[[Any], Any]
    item: Any
    future: Future[Any]
    deaths: int
    group: Any = None


class Ray:
    """Tasks of Ray Core on a cluster.

    Args:
        workers: The cores of a cluster that is started here, else the most tasks at a time; by default all cores.
        task: The resources of each task.
        folder: The folder that tasks write to. All nodes must share it; a second driver on it is refused.

    Raises InputError if Ray is not installed, the cluster cannot be reached, no node has what a task takes, or
    another driver works on `folder`.
    """

    elsewhere = True  # a node may have what the machine of this process has not, such as a GPU

    def __init__(self, workers: int | None = None, task: Task = Task(), folder: Path | None = None) -> None:  # noqa: B008
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self._ray, own = stack.enter_context(_connect_cluster(workers))
            self._bundles = _plan_bundles(self._ray, task)
            if folder and not own:
                stack.enter_context(_keep_others_out(self._ray, folder.absolute()))
            self._home = stack.enter_context(mark_home(folder))
            self._stack = stack.pop_all()
        most = GROUPS_AT_ONCE if len(self._bundles) > 1 else AT_ONCE
        self.at_once = most if own else min(workers or most, most)
        first = self._bundles[0]
        needs = {"num_cpus": first["CPU"], "num_gpus": first["GPU"], "memory": first["memory"] or None}
        self._call = self._ray.remote(max_retries=0, **needs)(_call_prepared)
        self._prepare = task.prepare
        self._running: dict[Any, SubmittedTask] = {}
        self._ended: queue.SimpleQueue[tuple[Any, Future[Any]] | str] = queue.SimpleQueue()
        self._closing, self._over = False, threading.Event()
        for work in (self._pass_on, self._watch):
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self) -> "Ray":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """See `Executor.submit`."""
        future: Future[R] = Future()
        self._begin(SubmittedTask(function, item, future, 0))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`; with `cancel_futures` what is running is killed too."""
        if self._over.is_set():
            return
        self._closing = self._closing or cancel_futures
        running = list(self._running)
        if cancel_futures:
            for reference in running:
                self._ray.cancel(reference, force=True)
        if wait and running:
            self._ray.wait(running, num_returns=len(running), timeout=PATIENCE if cancel_futures else None)
        if wait or cancel_futures:
            self._over.set()
            self._ended.put(OVER)
            self._stack.close()

    def _begin(self, given: SubmittedTask) -> None:
        call = self._call
        if len(self._bundles) > 1:
            bundles = [{name: need for name, need in one.items() if need} for one in self._bundles]
            given = given._replace(group=self._ray.util.placement_group(bundles, strategy="PACK"))
            call = call.options(scheduling_strategy=place_in(given.group, 0))
        reference = call.remote(self._home, self._prepare, given.function, given.item)
        self._running[reference] = given
        reference.future().add_done_callback(lambda done: self._ended.put((reference, done)))

    def _pass_on(self) -> None:
        """Passes results on, in a thread of its own: Ray is not to be called from its callback."""
        while (ended := self._ended.get()) != OVER:
            if isinstance(ended, str):
                while self._running:
                    self._running.popitem()[1].future.set_exception(_describe_loss(LOST))
            elif given := self._running.pop(ended[0], None):
                if given.group:  # in a thread, as the head may not answer
                    threading.Thread(
                        target=self._ray.util.remove_placement_group, args=(given.group,), daemon=True
                    ).start()
                self._settle(given, ended[1])

    def _settle(self, given: SubmittedTask, done: Future[Any]) -> None:
        """Gives a task its result, or begins it again if it is not at fault."""
        errors, error = self._ray.exceptions, done.exception()
        if error is None:
            given.future.set_result(done.result())
        elif isinstance(error, errors.RayTaskError) and not isinstance(error.cause, NodeLostError | WorkerDiedError):
            given.future.set_exception(self._find_cause(error))
        elif self._closing:
            given.future.cancel()
        elif isinstance(error, errors.NodeDiedError) or isinstance(getattr(error, "cause", None), NodeLostError):
            self._begin(given)
        elif not isinstance(error, errors.WorkerCrashedError | errors.OutOfMemoryError | errors.RayTaskError):
            given.future.set_exception(_describe_loss(_take_first_line(error)))
        elif given.deaths + 1 < ATTEMPTS:
            self._begin(given._replace(deaths=given.deaths + 1))
        else:
            given.future.set_exception(WorkerDiedError(DIED))

    def _watch(self) -> None:
        """Has all tasks fail once the head of the cluster is gone: a minute later Ray would end this process."""
        host, _, port = self._ray.get_runtime_context().gcs_address.rpartition(":")
        answered = time.monotonic()
        while time.monotonic() - answered < PATIENCE:
            if self._over.wait(INTERVAL):
                return
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), INTERVAL):
                answered = time.monotonic()
        self._ended.put(LOST)

    def _find_cause(self, error: Any) -> Exception:
        """The error that the task raised, or why it could not be loaded on its node."""
        if not isinstance(error.cause, self._ray.exceptions.RaySystemError):
            return error.cause
        last = str(error.cause).strip().splitlines()[-1]
        return InputError(f"a node of the cluster cannot load the task ({last}); install the packages of this machine")


def _call_prepared(home: Home, prepare: Callable[[], object], function: Callable[[A], R], item: A) -> R:
    enter_node(home)
    prepare()
    return function(item)


@contextlib.contextmanager
def _connect_cluster(workers: int | None) -> Iterator[tuple[Any, bool]]:
    """Yields Ray, connected for this block if it was not before, and whether the cluster was started for it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with naming_extra("--executor ray", "cluster"):
        import ray
    connected = ray.is_initialized()
    own = not connected and "RAY_ADDRESS" not in os.environ
    if not connected:
        here: dict[str, Any] = {"num_cpus": workers or cores(), "include_dashboard": False} if own else {}
        with warnings.catch_warnings():  # JAX warns of forks, but this one executes another program at once
            warnings.simplefilter("ignore", RuntimeWarning)
            _check_reachable(os.environ.get("RAY_ADDRESS", ""))
            try:
                ray.init(logging_level=logging.ERROR, log_to_driver=False, namespace=NAMESPACE, **here)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _refuse_cluster(_take_first_line(error)) from error
    try:
        yield ray, own
    finally:
        if not connected:
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raises InputError if nothing listens at an address HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():  # `auto`, for example, for which Ray looks on this machine
        return
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError as error:
        raise _refuse_cluster(error.strerror or "no answer") from error


def _refuse_cluster(reason: str) -> InputError:
    place = os.environ.get("RAY_ADDRESS", "a cluster on this machine")
    return InputError(
        f"RAY_ADDRESS: {place} cannot be reached ({reason}); "
        "check that the cluster runs, with the same version of Ray as here"
    )


def _describe_loss(reason: str) -> ClusterLostError:
    return ClusterLostError(f"the cluster is lost ({reason}); finished work is saved, and the same command resumes")


def _take_first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _plan_bundles(ray: Any, task: Task) -> list[dict[str, float]]:
    """The resources of a task on each node: all of them on one, else a part for each process on several.

    Raises InputError if the nodes do not have that.
    """
    needs = {"CPU": task.cores or 1, "GPU": task.gpus or 0, "memory": task.memory}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= need for name, need in needs.items()) for node in nodes):
        return [needs]
    part, several = divide_task(task), ""
    if task.processes > 1:
        room = count_room(nodes, part)
        if room >= task.processes:
            return [part] * task.processes
        several = f", and all nodes together have room for {room} of its {task.processes} processes"
    largest: dict[str, float] = max(
        nodes, key=lambda node: [node.get(name, 0) for name in ("GPU", "CPU", "memory")], default={}
    )
    raise InputError(
        f"a {task.name} takes {_describe_needs(needs)}, but no node has them: the largest has "
        f"{_describe_needs(largest)}{several}; ask for less, or add larger nodes"
    )


def _describe_needs(needs: dict[str, float]) -> str:
    memory = f"{needs.get('memory', 0) / GIGABYTE:.1f} GB of memory"
    return f"{needs.get('CPU', 0):g} cores, {needs.get('GPU', 0):g} GPUs and {memory}"


class _Driver:
    """Lives in the cluster as long as the driver that made it."""


@contextlib.contextmanager
def _keep_others_out(ray: Any, folder: Path) -> Iterator[None]:
    """Refuses other drivers of this cluster that work on the folder: a network disk may keep locks to one node."""
    until = time.monotonic() + LET_GO
    driver = ray.remote(num_cpus=0)(_Driver).options(name=f"driver of {folder}", namespace=NAMESPACE)
    while True:
        try:
            kept = driver.remote()
            break
        except ValueError as error:  # the name is taken
            if time.monotonic() > until:
                raise InputError(
                    f"{folder}: another driver of this cluster works on it; wait for it, or choose another folder"
                ) from error
            time.sleep(1)
    yield
    del kept  # and with it the name; the cluster may be gone, so nothing is asked of it
