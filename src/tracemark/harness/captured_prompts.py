"""What a live prompt is in a manifest: a text, a Jinja template with its source and options, or code.

A Jinja template is its source: that of its loader, compared with what was compiled, so that a file edited since is
noticed. Whatever the manifest has no member for (delimiters, extensions, policies, a class of environment, filters and
globals of one's own) changes the text in a way that no source states, and leaves the template unrecorded.
"""

from __future__ import annotations

import string
from collections.abc import Collection
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from tracemark.harness.captured_code import UnrecordedError
from tracemark.harness.includes import TemplateSyntaxFault, references
from tracemark.model.harness import JinjaOptions

if TYPE_CHECKING:
    from jinja2 import Environment, Template, nodes

_STATED = ("trim_blocks", "lstrip_blocks", "keep_trailing_newline")
_FIXED = (
    "block_start_string",
    "block_end_string",
    "variable_start_string",
    "variable_end_string",
    "comment_start_string",
    "comment_end_string",
    "line_statement_prefix",
    "line_comment_prefix",
    "newline_sequence",
    "finalize",
    "policies",
    "code_generator_class",
    "concat",
    "context_class",
    "template_class",
)
_BY_NAME = frozenset({"map", "reject", "rejectattr", "select", "selectattr"})
"""Filters that are given the names of other filters and of tests."""


def members(value: Any, files: dict[str, bytes]) -> dict[str, Any]:
    """Return the members of a prompt template for a live value that stands for one.

    Args:
        value: a text, a file's path, a Jinja template, or code that makes the text.
        files: takes the sources of the templates that it brings in, by name.

    Raises:
        UnrecordedError: when it cannot be identified.
    """
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, Path):
        try:
            return {"text": value.read_bytes().decode("utf-8")}
        except (OSError, UnicodeDecodeError) as error:
            raise UnrecordedError(f"the file {value.name!r} cannot be read as text: {error}") from None
    if _is_jinja(value):
        return _jinja(value, files)
    if isinstance(value, string.Template):
        raise UnrecordedError(
            "a string.Template has a syntax of its own; write the text with `syntax: format` or `jinja`"
        )
    if callable(value):
        return {"entry": value}
    raise UnrecordedError(f"an object of `{type(value).__qualname__}` is no text, no Jinja template and no code")


def _is_jinja(value: object) -> bool:
    # jinja2 is not loaded for this: who has a template of it has loaded it
    return any(kind.__module__ == "jinja2.environment" and kind.__name__ == "Template" for kind in type(value).__mro__)


def _jinja(template: Template, files: dict[str, bytes]) -> dict[str, Any]:
    environment = template.environment
    options = _options(environment, template.name)
    source = _source(template, environment)
    pending = [(source, template.name or "")]
    brought: dict[str, bytes] = {}
    while pending:
        text, name = pending.pop()
        _require_plain(text, environment, template)
        if _is_escaped(environment, name) != options.autoescape:
            raise UnrecordedError(f"it brings in {name!r}, of which `autoescape` is another than its own")
        for included in _included(text, options, name):
            if included not in brought:
                inner = _loaded(environment, included)
                if inner is not None:
                    brought[included] = inner.encode()
                    pending.append((inner, included))
    for name, raw in brought.items():
        if files.get(name, raw) != raw:
            raise UnrecordedError(f"it brings in {name!r}, which is another text in another template")
    files.update(brought)
    return {"text": source, "syntax": "jinja", "options": options.model_dump()}


def _options(environment: Environment, name: str | None) -> JinjaOptions:
    """Return the options of an environment.

    Raises:
        UnrecordedError: when it has others than a manifest knows.
    """
    from jinja2 import Environment, StrictUndefined, Undefined, sandbox  # noqa: PLC0415 - slow to import, rarely used

    if type(environment) not in (Environment, sandbox.SandboxedEnvironment, sandbox.ImmutableSandboxedEnvironment):
        raise UnrecordedError(f"its environment is of a class of its own, `{type(environment).__qualname__}`")
    usual = Environment()  # noqa: S701 - nothing is rendered with it
    for member in _FIXED:
        if getattr(environment, member) != getattr(usual, member):
            raise UnrecordedError(f"its environment has `{member}` of its own, for which a manifest has no member")
    if environment.extensions:
        raise UnrecordedError(f"its environment has extensions: {', '.join(sorted(environment.extensions))}")
    kinds = {Undefined: "default", StrictUndefined: "strict"}
    if environment.undefined not in kinds:
        raise UnrecordedError("its environment has a class of undefined values of its own")
    stated = {option: getattr(environment, option) for option in _STATED}
    escaped = _is_escaped(environment, name or "")
    return JinjaOptions.model_validate({**stated, "autoescape": escaped, "undefined": kinds[environment.undefined]})


def _is_escaped(environment: Environment, name: str) -> bool:
    """Return whether what the template of a name writes is escaped."""
    return bool(environment.autoescape(name) if callable(environment.autoescape) else environment.autoescape)


def _source(template: Template, environment: Environment) -> str:
    """Return the source of a template, after making sure that it is what was compiled.

    Raises:
        UnrecordedError: when there is none, or it is another one by now.
    """
    if template.name is None or environment.loader is None:
        raise UnrecordedError("a Jinja template made of a text keeps no source; give the text, with `syntax: jinja`")
    source = _loaded(environment, template.name)
    if source is None:
        raise UnrecordedError("its loader finds no source of it (any more)")
    code = environment.compile(source, template.name, template.filename)
    roots = [one for one in code.co_consts if isinstance(one, CodeType)]
    live = {"root": template.root_render_func, **{f"block_{name}": block for name, block in template.blocks.items()}}
    if {_text(one) for one in roots} != {_text(function.__code__) for function in live.values()}:
        raise UnrecordedError("its source is not what was compiled: it was changed since")
    return source


def _text(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_text(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return (code.co_name, code.co_code, constants, code.co_names, code.co_varnames)


def _loaded(environment: Environment, name: str) -> str | None:
    """Return the source of a template by its name, with the line ends of its file; None when there is none."""
    from jinja2 import TemplateNotFound  # noqa: PLC0415 - as above

    assert environment.loader is not None
    try:
        source, filename, _ = environment.loader.get_source(environment, name)
    except (TemplateNotFound, OSError, UnicodeDecodeError, RuntimeError):
        return None
    if filename is not None and Path(filename).is_file():
        exact = Path(filename).read_bytes().decode("utf-8", "replace")
        if exact.replace("\r\n", "\n").replace("\r", "\n") == source:
            return exact
    return str(source)


def _included(text: str, options: JinjaOptions, name: str) -> list[str]:
    try:
        return [inner for reference in references(text, options) for inner in reference.names]
    except TemplateSyntaxFault as error:
        raise UnrecordedError(f"the template {name!r} does not parse: {error}") from None


def _require_plain(text: str, environment: Environment, template: Template) -> None:
    """Make sure that a text uses filters, tests and globals of Jinja alone.

    Raises:
        UnrecordedError: when it uses one of the environment's own.
    """
    from jinja2 import Environment, meta, nodes  # noqa: PLC0415 - as above

    usual = Environment()  # noqa: S701 - nothing is rendered with it
    tree = environment.parse(text)
    for kind, table, known in (
        (nodes.Filter, environment.filters, usual.filters),
        (nodes.Test, environment.tests, usual.tests),
    ):
        own = {name for name in {*table, *known} if table.get(name) is not known.get(name)}
        used = {node.name for node in tree.find_all(kind)} | _given_by_name(tree, own)
        if found := sorted(used & own):
            raise UnrecordedError(f"it uses {found[0]!r}, a {kind.__name__.lower()} of its environment's own")
    held = {**environment.globals, **template.globals}
    known = dict(usual.globals)
    # a name that an environment knows counts as declared there
    usual.globals.clear()
    for name in sorted(meta.find_undeclared_variables(usual.parse(text))):
        if name in held and held[name] is not known.get(name):
            raise UnrecordedError(f"it uses {name!r}, a global of its environment, whose value no source states")


def _given_by_name(tree: nodes.Template, known: Collection[str]) -> set[str]:
    """Return the names of filters and tests that a template gives to a filter, all of `known` where it computes one."""
    from jinja2 import nodes  # noqa: PLC0415 - as above

    found: set[str] = set()
    for node in tree.find_all(nodes.Filter):
        if node.name in _BY_NAME:
            is_written = all(isinstance(one, nodes.Const) for one in node.args) and not node.dyn_args
            found.update([str(one.value) for one in node.args] if is_written else known)  # type: ignore[attr-defined]
    return found
