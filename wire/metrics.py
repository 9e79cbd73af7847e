"""Every metric of the system, in one place: base units, bounded labels, a registry for each process.

Labels are hop and topic names, reason classes, verdict kinds, domains and outcomes: never an id.
"""

import asyncio
import os
from pathlib import Path
from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

_HANDLER_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300)
_STEP_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_UPDATE_BUCKETS = (0, 1, 2, 3, 4, 6, 8, 16, 32)


class Metrics:
    """What one process counts. Anyone may use the part that is theirs; the rest stays at zero."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # process_resident_memory_bytes and its like
        registry = self.registry

        # every hop (wire.hop.processor, wire.hop.runner)
        self.events_in = Counter(
            "headwater_events_in", "Events delivered to a hop.", ["hop", "topic"], registry=registry
        )
        self.events_out = Counter(
            "headwater_events_out", "Events a hop published.", ["hop", "topic"], registry=registry
        )
        self.handler_seconds = Histogram(
            "headwater_handler_seconds",
            "From an event's delivery until what follows from it is durable.",
            ["hop"],
            buckets=_HANDLER_BUCKETS,
            registry=registry,
        )
        self.busy_seconds = Counter(
            "headwater_busy_seconds", "Time in which a hop had an event in hand.", ["hop"], registry=registry
        )
        self.lag = Gauge(
            "headwater_consumer_lag_events", "Events not committed yet.", ["hop", "topic"], registry=registry
        )
        self.in_flight = Gauge("headwater_in_flight_events", "Events being handled.", ["hop"], registry=registry)
        self.dead_letters = Counter(
            "headwater_dead_letters", "Events put aside, by class of reason.", ["hop", "reason"], registry=registry
        )
        self.skipped = Counter(
            "headwater_skipped_events",
            "Unreadable events left to the topic's first reader.",
            ["hop", "reason"],
            registry=registry,
        )
        self.retries = Counter("headwater_retries", "Tries beyond the first.", ["hop"], registry=registry)
        self.duplicates_dropped = Counter(
            "headwater_duplicates_dropped", "Events seen before, or too late to count.", ["hop"], registry=registry
        )

        # grading
        self.verdicts = Counter(
            "headwater_verdicts", "Verdicts by kind; `fault` is a failure to grade.", ["kind"], registry=registry
        )
        self.jail_seconds = Histogram(
            "headwater_jail_seconds", "Time one job spent in jails.", buckets=_HANDLER_BUCKETS, registry=registry
        )
        self.rewards = Counter(
            "headwater_rewards",
            "Rewards by domain and whether there is one.",
            ["domain", "scorable"],
            registry=registry,
        )
        self._count_training(registry)
        self._server: tuple[WSGIServer, Thread] | None = None

    def _count_training(self, registry: CollectorRegistry) -> None:
        """Sampling and training."""
        self.tokens_sampled = Counter("headwater_tokens_sampled", "Completion tokens sampled.", registry=registry)
        self.groups_outstanding = Gauge(
            "headwater_groups_outstanding", "Train groups admitted and not ended.", registry=registry
        )
        self.groups_ended = Counter(
            "headwater_groups_ended", "Train groups by how they ended.", ["outcome"], registry=registry
        )
        self.staleness = Histogram(
            "headwater_staleness_updates",
            "Age of a group's oldest token when it is trained on.",
            buckets=_UPDATE_BUCKETS,
            registry=registry,
        )
        self.step_seconds = Histogram(
            "headwater_step_seconds", "One optimiser step.", buckets=_STEP_BUCKETS, registry=registry
        )
        self.wait_seconds = Counter(
            "headwater_learner_wait_seconds", "Time the learner waited for groups.", registry=registry
        )
        self.loss = Gauge("headwater_loss", "Loss of the newest step.", registry=registry)
        self.gradient_norm = Gauge(
            "headwater_gradient_norm", "Gradient norm of the newest step, before clipping.", registry=registry
        )
        self.micro_batch_seconds = Gauge(
            "headwater_micro_batch_seconds",
            "The newest step's longest micro-batch: a stop waits so long.",
            registry=registry,
        )
        self.publish_kl = Gauge(
            "headwater_publish_kl_nats", "KL(published ‖ trained policy) of the newest snapshot.", registry=registry
        )
        self.mismatch_kl = Gauge(
            "headwater_mismatch_kl_nats",
            "KL(sampler ‖ trained policy) of the newest step, by what it comes from.",
            ["cause"],
            registry=registry,
        )
        self.steps_skipped = Counter(
            "headwater_steps_skipped", "Steps with a loss or gradient that was not finite.", registry=registry
        )
        self.weights_incarnation = Gauge(
            "headwater_weights_incarnation", "Learner's life whose weights are held.", registry=registry
        )
        self.weights_version = Gauge("headwater_weights_version", "Policy version held.", registry=registry)
        self.weights_refused = Counter(
            "headwater_weights_refused",
            "Tries to load published weights that failed: bytes gone or wrong, or of another model.",
            registry=registry,
        )

    async def serve(self, port: int = 0, *, host: str = "127.0.0.1", port_file: Path | None = None) -> int:
        """Serve `/metrics` at an address of this host and return the port; `port` 0: any free one.

        `port_file` gets the bound port, so that others on this machine find it. Raises OSError when
        the port is taken, or the address is none of this host's.
        """
        assert self._server is None, "already serving"
        self._server = await asyncio.to_thread(start_http_server, port, host, self.registry)
        bound = self._server[0].server_port
        if port_file is not None:
            await asyncio.to_thread(_write_port, port_file, bound)
        return bound

    async def close(self) -> None:
        """Stop serving, if it was."""
        if self._server is not None:
            server, thread = self._server
            self._server = None
            await asyncio.to_thread(_shut_down, server, thread)


def _shut_down(server: WSGIServer, thread: Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()


def _write_port(path: Path, port: int) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(f"{port}\n")
    unfinished.replace(path)
