"""The tree of commands, made from the table; a command's module is imported when the command is used.

Invariants:
- a help page of a group reads the table only;
- each help page ends with the exit codes of the commands that it is about;
- a command's function returns its exit code.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tracemark import __version__
from tracemark.cli.command_table import COMMANDS, GROUPS, epilog
from tracemark.errors import UsageError

PROGRAM = "tracemark"
"""The name by which the program speaks of itself."""

_HELP = """The trace store that knows which harness made every trace.

Data goes to standard output, words to standard error; --output json gives a command's whole answer as data.
"""


class LazyGroup(TyperGroup):
    """A group whose commands are known by name and help text until one of them is used."""

    path: str = ""
    """The group's place, `harness`; empty for the program itself."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the loaded command, and the arguments left for it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or isinstance(command, LazyGroup):
            return name, command, rest
        return name, load(f"{self.path} {name}".strip()), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the group's own options; without any argument, show the help page as a usage error."""
        if not args:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)


def load(path: str) -> Any:
    """Return the command at `path`, such as `traces list`, its module imported."""
    module = import_module(f"tracemark.cli.commands.{path.replace(' ', '_')}")
    app = _typer()
    app.command(path.rpartition(" ")[2], epilog=epilog(path))(module.command)
    return get_command(app)


def build() -> Any:
    """Return the whole tree, no command loaded."""
    root = _group("", _HELP, _options)
    for path, entry in COMMANDS.items():
        group, _, name = path.rpartition(" ")
        if group and group not in root.commands:
            root.commands[group] = _group(group, GROUPS[group])
        owner = root.commands[group] if group else root
        owner.commands[name] = TyperCommand(name, help=entry.help)
    return root


def _group(path: str, text: str, callback: Callable[..., None] | None = None) -> Any:
    app = _typer(name=path or PROGRAM, cls=LazyGroup, help=text, epilog=epilog(path))
    app.callback()(callback or (lambda: None))
    group = get_command(app)
    assert isinstance(group, LazyGroup)
    group.path = path
    return group


def _typer(**settings: Any) -> typer.Typer:
    # rich would slow every start, and its error pages hide ours
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **settings)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _options(
    ctx: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option(
            help="The corpus; default: the nearest parent that holds traces/STORE or params.yaml.",
            metavar="DIR",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", help="Show the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    ctx.obj = root
