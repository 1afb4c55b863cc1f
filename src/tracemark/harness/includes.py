"""Which other templates a Jinja template brings in: `include`, `extends`, `import` and `from … import`.

A template is parsed and never rendered. Names are paths from the harness folder, as for every other file. A name that
the template computes cannot be known and is a finding; a template that does not parse is a problem, because what it
brings in is then unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tracemark.findings import Finding, finding
from tracemark.harness.folder import HarnessFolder, RefusedFileError
from tracemark.model.harness import JinjaOptions

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import Template


class Reference(NamedTuple):
    """One place where a template brings in another."""

    line: int
    """Where it stands, counted from 1."""
    names: tuple[str, ...]
    """The templates tried, in order; empty when the name is computed."""
    optional: bool
    """Whether none of them need exist."""


@dataclass
class Includes:
    """The templates that one template brings in."""

    files: list[str] = field(default_factory=list)
    """Keys of the files, in the order met, each once."""
    findings: list[Finding] = field(default_factory=list)
    """What is uncertain."""
    problems: list[Finding] = field(default_factory=list)
    """What makes a fingerprint impossible."""


class TemplateSyntaxFault(Exception):  # noqa: N818 - jinja2 has the name with Error
    """A template that does not parse.

    Args:
        message: what is wrong.
        line: where, counted from 1; None when unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def environment(options: JinjaOptions | None) -> Environment:
    """Return a Jinja environment without a loader and with the options that a manifest declares; only for parsing."""
    # jinja2 is slow to import, and most harnesses have no template in it
    from jinja2 import Environment, StrictUndefined, Undefined  # noqa: PLC0415

    chosen = options or JinjaOptions()
    return Environment(
        trim_blocks=chosen.trim_blocks,
        lstrip_blocks=chosen.lstrip_blocks,
        keep_trailing_newline=chosen.keep_trailing_newline,
        autoescape=chosen.autoescape,  # noqa: S701 - a prompt is no page; the manifest says what holds
        undefined=StrictUndefined if chosen.undefined == "strict" else Undefined,
    )


def parse(text: str, options: JinjaOptions | None) -> Template:
    """Parse a Jinja template.

    Raises:
        TemplateSyntaxFault: when it does not parse.
    """
    from jinja2 import TemplateSyntaxError  # noqa: PLC0415 - heavy, see `environment`

    try:
        return environment(options).parse(text)
    except TemplateSyntaxError as error:
        raise TemplateSyntaxFault(error.message or "does not parse", error.lineno) from None
    except RecursionError:
        raise TemplateSyntaxFault("is nested too deeply") from None


def references(text: str, options: JinjaOptions | None) -> list[Reference]:
    """Return every place where a template brings in another.

    Raises:
        TemplateSyntaxFault: when it does not parse.
    """
    from jinja2 import nodes  # noqa: PLC0415 - heavy, see `environment`

    found = []
    for node in parse(text, options).find_all((nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)):
        target = getattr(node, "template", None)
        choice = isinstance(target, nodes.Tuple | nodes.List)
        items = target.items if isinstance(target, nodes.Tuple | nodes.List) else [target]
        names = [item.value for item in items if isinstance(item, nodes.Const) and isinstance(item.value, str)]
        known = tuple(names) if len(names) == len(items) else ()
        found.append(Reference(node.lineno, known, choice or bool(getattr(node, "ignore_missing", False))))
    return found


def collect(folder: HarnessFolder, text: str, where: str, options: JinjaOptions | None) -> Includes:
    """Return every template that `text` brings in, directly or not, read through `folder`.

    Args:
        folder: where the templates are.
        text: the template to begin with.
        where: its file or its place in the manifest, for findings.
        options: the environment's options.
    """
    includes = Includes()
    pending = [(text, where)]
    while pending:
        text, where = pending.pop(0)
        try:
            found = references(text, options)
        except TemplateSyntaxFault as error:
            place = f"{where}:{error.line}" if error.line and ":" not in where else where
            includes.problems.append(finding("source-unparsable", place, f"the Jinja template is wrong: {error}"))
            continue
        for reference in found:
            place = f"{where}:{reference.line}" if ":" not in where else where
            if not reference.names:
                message = "brings in a template whose name is computed"
                includes.findings.append(finding("closure-incomplete", place, message, "name the template literally"))
            for name in reference.names:
                _bring_in(includes, pending, folder, name, _From(place, reference.optional))
    return includes


class _From(NamedTuple):
    where: str
    optional: bool


def _bring_in(
    includes: Includes, pending: list[tuple[str, str]], folder: HarnessFolder, name: str, source: _From
) -> None:
    try:
        key = folder.member(name)
    except RefusedFileError as error:
        if not (source.optional and error.problem.code == "manifest-file-missing"):
            message = f"the template {name!r} cannot be brought in: {error.problem.message}"
            includes.problems.append(finding(error.problem.code, source.where, message))
        return
    if key in includes.files:
        return
    includes.files.append(key)
    try:
        pending.append((folder.files[key].decode("utf-8"), key))
    except UnicodeDecodeError:
        includes.problems.append(finding("source-unparsable", key, f"the template {key!r} is not UTF-8"))
