"""Which service answers which method; complete, or the daemon does not start."""

from __future__ import annotations

from jackin_memd.services import streams
from jackin_memd.services.context import Handler
from jackin_memd.services.daemon import DaemonService
from jackin_memd.services.instances import Instances
from jackin_memd.services.status import StatusService
from jackin_memd.wire.methods import METHODS


def make_handlers(
    daemon: DaemonService, instances: Instances, status: StatusService
) -> dict[str, Handler]:
    """Raises RuntimeError where the method table and the services differ."""
    handlers: dict[str, Handler] = {
        "hello": daemon.hello,
        "ping": daemon.ping,
        "status": daemon.status,
        "shutdown": daemon.shutdown,
        "rpc.discover": daemon.discover,
        "instance.load": instances.load,
        "instance.unload": instances.unload,
        "instance.purge": instances.purge,
        "instance.list": instances.list,
        "instance.get": instances.get,
        "status.record": status.record,
        "status.list": status.list,
        "status.latest": status.latest,
        "status.subscribe": status.stream.subscribe,
        "subscription.cancel": streams.cancel,
    }
    if handlers.keys() != METHODS.keys():
        odd = sorted(handlers.keys() ^ METHODS.keys())
        raise RuntimeError(f"in the method table or among the services, but not both: {odd}")
    return handlers
