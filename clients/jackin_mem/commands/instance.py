"""jackin-mem instance: which instances the daemon serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from jackin_mem.blocking import Client
from jackin_mem.options import UsageError, add_command, make_client, print_json, wants_json
from jackin_mem.render import fields, local_time, printable, table
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.instances import (
    Instance,
    InstanceGetParams,
    InstanceListParams,
    InstanceListResult,
    InstanceLoadParams,
    InstancePurgeParams,
    InstancePurgeResult,
    InstanceState,
    InstanceUnloadParams,
)


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = add_command(commands, "list", "all known instances")
    listing.add_argument("--state", choices=[state.value for state in InstanceState])
    listing.set_defaults(run=_list)
    get = add_command(commands, "get", "one instance")
    get.add_argument(
        "instance", nargs="?", metavar="INSTANCE", help="may be left out in a container"
    )
    get.set_defaults(run=_get)
    _configure_load(add_command(commands, "load", "serve an instance"))
    unload = add_command(commands, "unload", "serve an instance no longer; its files stay")
    unload.add_argument("instance", metavar="INSTANCE")
    unload.set_defaults(run=_unload)
    purge = add_command(commands, "purge", "unload an instance and delete its record")
    purge.add_argument("instance", metavar="INSTANCE")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    purge.set_defaults(run=_purge)


def _configure_load(load: argparse.ArgumentParser) -> None:
    load.add_argument("container", metavar="CONTAINER", help="its full name: jk-…")
    load.add_argument("--workspace", metavar="NAME", help="where it has no .jackin/instance.json")
    load.add_argument("--role", metavar="KEY", help="likewise: name or namespace/name")
    load.add_argument("--agent", metavar="SLUG", help="likewise: claude, codex, …")
    load.set_defaults(run=_load)


def all_instances(client: Client, state: InstanceState | None = None) -> Iterator[Instance]:
    """Every page of instance.list."""
    after = None
    while True:
        page: InstanceListResult = client.call(
            "instance.list", InstanceListParams(state=state, after=after), retry=True
        )
        yield from page.instances
        if not page.more or not page.instances:
            return
        after = page.instances[-1].container


def _list(options: argparse.Namespace) -> None:
    state = InstanceState(options.state) if options.state else None
    with make_client(options) as client:
        instances = list(all_instances(client, state))
    if wants_json(options):
        print_json({"instances": instances})
    elif not instances:
        print("no instances")
    else:
        headers = ("CONTAINER", "STATE", "WORKSPACE", "ROLE", "AGENT", "LOADED")
        print(table(headers, [_row(instance) for instance in instances]))
        _print_problems(instances)


def _row(instance: Instance) -> tuple[str, ...]:
    return (
        instance.container,
        instance.state.value,
        instance.workspace_name or "-",
        instance.role_key or "-",
        instance.agent_runtime or "-",
        local_time(instance.loaded_at),
    )


def _print_problems(instances: list[Instance]) -> None:
    for instance in instances:
        problem = instance.problem
        if problem is not None:
            print(f"\n{instance.container}: {printable(problem.message)}")
            if problem.hint:
                print(f"  hint: {printable(problem.hint)}")


def _get(options: argparse.Namespace) -> None:
    with make_client(options) as client:
        found = client.call("instance.get", InstanceGetParams(instance=options.instance))
    _print_instance(options, found)


def _load(options: argparse.Namespace) -> None:
    params = InstanceLoadParams(
        container=options.container,
        workspace_name=options.workspace,
        role_key=options.role,
        agent_runtime=options.agent,
    )
    with make_client(options) as client:
        try:
            loaded = client.call("instance.load", params, retry=True)
        except MemdError as error:
            if error.code is ErrorCode.INSTANCE_IDENTITY_MISSING:
                error.hint = "give --role, and --workspace and --agent where it has them"
            raise
    _print_instance(options, loaded)


def _unload(options: argparse.Namespace) -> None:
    params = InstanceUnloadParams(instance=options.instance)
    with make_client(options) as client:
        unloaded = client.call("instance.unload", params, retry=True)
    _print_instance(options, unloaded)


def _print_instance(options: argparse.Namespace, instance: Instance) -> None:
    if wants_json(options):
        print_json(instance)
        return
    known = (
        ("container", instance.container),
        ("state", instance.state.value),
        ("workspace", instance.workspace_name or instance.workdir_fingerprint),
        ("role", instance.role_key),
        ("agent", instance.agent_runtime),
        ("identity", f"from the {instance.identity_source.value}"),
        ("loaded", local_time(instance.loaded_at)),
        ("socket", instance.socket),
    )
    print(fields((name, value) for name, value in known if value is not None))
    _print_problems([instance])


def _purge(options: argparse.Namespace) -> int | None:
    with make_client(options) as client:
        if not options.yes and not _confirmed(client, options.instance):
            print("nothing was purged", file=sys.stderr)
            return 1
        params = InstancePurgeParams(instance=options.instance)
        purged: InstancePurgeResult = client.call("instance.purge", params, retry=True)
    if wants_json(options):
        print_json(purged)
    else:
        print(f"purged {purged.container}")
        for name in purged.removed:
            print(f"  deleted {printable(name)}")
    return None


def _confirmed(client: Client, reference: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "purge deletes what is known of an instance, and there is no terminal to ask on",
            "give --yes to do it unasked",
        )
    instance: Instance = client.call("instance.get", InstanceGetParams(instance=reference))
    question = f"Delete the status, usage and tool record of {instance.container} for good? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
