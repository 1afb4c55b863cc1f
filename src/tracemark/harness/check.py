"""Everything that is wrong, or uncertain, about harness versions, as findings.

`check` adds to what reading a harness found what a fingerprint can do without: whether templates parse and declare
their variables, whether schemas are valid JSON Schema, whether each entry's attribute is defined. `check_folder` does
the same for a folder that may not be readable at all, and `together` looks at several harnesses at once. Nothing is
changed and nothing is executed.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from types import FunctionType
from typing import TYPE_CHECKING

from tracemark.findings import Finding, finding
from tracemark.harness import source
from tracemark.harness.closure import module_name
from tracemark.harness.equivalence import program
from tracemark.harness.fingerprint import normal
from tracemark.harness.includes import TemplateSyntaxFault, parse
from tracemark.harness.loading import examine
from tracemark.harness.match import Matcher
from tracemark.harness.rerender import NotRenderedError, Rerendering
from tracemark.harness.version import Harness
from tracemark.model.harness import COMPONENTS, MANIFEST_NAME, JinjaOptions, PromptTemplate

if TYPE_CHECKING:
    from jinja2.nodes import Template

_CONSTANT = "a constant"
"""Stands for a constant where variables are looked for; no name of a template is so."""

_SHOWN = 16
"""Characters of a fingerprint that name it to a reader."""


def check(harness: Harness) -> list[Finding]:
    """Return every finding about a harness that could be read, those of reading it first; empty when all is well.

    Args:
        harness: from a folder or from a snapshot; `where` is relative to its folder.
    """
    found = [*harness.findings, *_parts(harness), *_templates(harness), *_handlers(harness), *_schemas(harness)]
    found += _entries(harness)
    return list(dict.fromkeys(found))


def check_folder(folder: Path) -> list[Finding]:
    """Return every finding about a harness version that may not be readable.

    Args:
        folder: the folder that holds `harness.yaml`.

    Returns:
        Problems that prevent a fingerprint first; `where` is relative to the folder. Empty when all is well.
    """
    examined = examine(folder)
    if examined.harness is not None:
        return check(examined.harness)
    return [*examined.problems, *examined.findings]


def together(harnesses: Iterable[Harness], equivalents: Iterable[frozenset[str]] = ()) -> list[Finding]:
    """Return every finding that is about several harnesses at once.

    Args:
        harnesses: those of a corpus, versions and snapshots.
        equivalents: disjoint sets of fingerprints that count as one.
    """
    known = list({harness.fingerprint: harness for harness in harnesses}.values())
    one = {fingerprint: group for group in equivalents for fingerprint in group}
    return [*_alike(known, one), *_shared_names(known)]


def _alike(harnesses: Sequence[Harness], one: Mapping[str, frozenset[str]]) -> Iterable[Finding]:
    """Yield a finding for each set of harnesses that no content can tell apart, unless they count as one.

    Whatever excludes one of them excludes all, so a `unique` export of any is empty of traces that were not recorded.
    """
    groups: dict[Hashable, list[Harness]] = {}
    for harness in harnesses:
        groups.setdefault(Matcher(harness).compared, []).append(harness)
    for group in groups.values():
        if len({one.get(harness.fingerprint, harness.fingerprint) for harness in group}) == 1:
            continue
        digests = [harness.identity.components for harness in group]
        differing = [name for name in COMPONENTS if len({components[name] for components in digests}) > 1]
        message = f"they differ only in {' and '.join(differing)}, in what no trace shows"
        older = sorted({one.name for one in group if one.folder} & {one.name for one in group if not one.folder})
        if older:
            message += f"; the snapshot is what {', '.join(map(repr, older))} was before it was edited"
        yield finding("siblings-alike", ", ".join(map(_described, group)), message, _one_program(group, one))


def _one_program(group: Sequence[Harness], one: Mapping[str, frozenset[str]]) -> str | None:
    """Return the command that lets two of a group count as one which are the same program; None when no two are."""
    first: dict[str, Harness] = {}
    for harness in group:
        other = first.setdefault(program(harness), harness)
        if one.get(other.fingerprint, other.fingerprint) != one.get(harness.fingerprint, harness.fingerprint):
            pair = f"{other.fingerprint[:_SHOWN]} {harness.fingerprint[:_SHOWN]}"
            return f"tracemark harness equivalent {pair} --reason TEXT: these differ in comments and layout alone"
    return None


def _described(harness: Harness) -> str:
    kind = "snapshot" if harness.folder is None else "folder"
    return f"{harness.name} ({kind}, {harness.fingerprint[:_SHOWN]})"


def _shared_names(harnesses: Sequence[Harness]) -> Iterable[Finding]:
    """Yield a finding for each name to which several versions answer, be it a folder's or a label."""
    answering: dict[str, list[str]] = {}
    for harness in harnesses:
        if harness.folder is not None:
            for name in dict.fromkeys((harness.folder.name, harness.name)):
                answering.setdefault(name, []).append("/".join(harness.folder.parts[-2:]))
    for name, places in answering.items():
        if len(places) > 1:
            yield finding("name-shared", ", ".join(places), f"{len(places)} versions answer to {name!r}")


def _parts(harness: Harness) -> Iterable[Finding]:
    if not any(harness.identity.parts.values()):
        yield finding("harness-empty", MANIFEST_NAME, "no prompt, tool, handler or runtime entry is declared")


def _templates(harness: Harness) -> Iterable[Finding]:
    for prompt in harness.manifest.prompt_templates:
        if prompt.entry is not None:
            continue
        where = normal(prompt.file) if prompt.file is not None else f"{MANIFEST_NAME}: prompt {prompt.name!r}"
        try:
            text = harness.prompt_text(prompt.name) or ""
        except UnicodeDecodeError:
            yield finding("template-invalid", where, "the template is not UTF-8, so it cannot be rendered")
            continue
        try:
            used = _variables(text, prompt.syntax, prompt.options)
        except TemplateSyntaxFault as error:
            place = f"{where}:{error.line}" if error.line else where
            yield finding("template-invalid", place, f"not in the syntax `{prompt.syntax}`: {error}")
            continue
        if not harness.includes.get(("prompt_templates", prompt.name)):
            yield from _undeclared(prompt, used, where)


def _handlers(harness: Harness) -> Iterable[Finding]:
    handlers = harness.manifest.observation_handlers
    for handler in handlers:
        if handler.template is None:
            continue
        where = f"{MANIFEST_NAME}: handler {handler.name!r}"
        if handler is not handlers[-1]:
            said = f"the model sees what {handlers[-1].name!r} gives, which is the last handler"
            yield finding("template-not-rendered", where, said)
            continue
        try:
            Rerendering(handler.template)
        except (NotRenderedError, TemplateSyntaxFault) as error:
            yield finding("template-not-rendered", where, str(error))


def _undeclared(prompt: PromptTemplate, used: set[str], where: str) -> Iterable[Finding]:
    for name in sorted(used - set(prompt.variables)):
        message = f"prompt {prompt.name!r} uses the variable {name!r}, which `variables` does not declare"
        yield finding("template-variable", where, message)
    for name in sorted(set(prompt.variables) - used):
        message = f"prompt {prompt.name!r} declares the variable {name!r} and does not use it"
        yield finding("template-variable", where, message, "take it out of `variables`, or use it")


def _variables(text: str, syntax: str, options: JinjaOptions | None) -> set[str]:
    """Return the variables that a template uses.

    Raises:
        TemplateSyntaxFault: when it does not parse.
    """
    if syntax == "literal":
        return set()
    if syntax == "jinja":
        from jinja2 import TemplateSyntaxError, meta  # noqa: PLC0415 - heavy, and few harnesses use it

        try:
            return meta.find_undeclared_variables(_unfolded(parse(text, options))) - {_CONSTANT}
        except TemplateSyntaxError as error:
            # an unknown filter or test shows only here
            raise TemplateSyntaxFault(error.message or "does not compile", error.lineno) from None
    return _fields(text)


def _unfolded(tree: Template) -> Template:
    """Return a template with a variable in the place of every constant.

    Jinja computes what holds constants alone while it looks for variables, and `10 ** 10 ** 9` has no end.
    """
    from jinja2 import nodes  # noqa: PLC0415 - as above
    from jinja2.visitor import NodeTransformer  # noqa: PLC0415 - as above

    class Unfolding(NodeTransformer):
        def visit_Const(self, node: nodes.Const) -> nodes.Name:  # noqa: N802 - Jinja looks it up by this name
            return nodes.Name(_CONSTANT, "load", lineno=node.lineno)

    Unfolding().visit(tree)
    return tree


def _fields(text: str) -> set[str]:
    names: set[str] = set()
    try:
        for _, name, specification, _ in Formatter().parse(text):
            if name is not None:
                names.add(name.split(".")[0].split("[")[0])
                names |= _fields(specification or "")
    except ValueError as error:
        raise TemplateSyntaxFault(str(error)) from None
    if any(name == "" or name.isdigit() for name in names):
        raise TemplateSyntaxFault("a field has no name; write {name}, or {{ and }} for literal braces")
    return names


def _schemas(harness: Harness) -> Iterable[Finding]:
    # a compiled library that only this check needs
    from jsonschema_rs import ReferencingError, ValidationError, meta  # noqa: PLC0415

    for name, tool in harness.manifest.tool_bindings.items():
        where = normal(tool.definition) if isinstance(tool.definition, str) else f"{MANIFEST_NAME}: tool {name!r}"
        parameters = harness.tool_schema(name).get("parameters")
        if parameters is None:
            continue
        try:
            meta.validate(parameters)
        except ValidationError as error:
            path = "/".join(map(str, error.instance_path))
            message = f"tool {name!r}: no valid JSON Schema at parameters/{path}: {error.message}"
            yield finding("schema-invalid", where, message)
        except (ReferencingError, ValueError) as error:
            yield finding("schema-invalid", where, f"tool {name!r}: no valid JSON Schema: {error}")


def _entries(harness: Harness) -> Iterable[Finding]:
    for (component, part), entry in harness.manifest.entries().items():
        place, _, attribute = entry.partition(":")
        if not _defines(harness, entry, attribute.split(".")):
            message = f"{component} {part!r}: {place!r} does not define {attribute!r}"
            yield finding("entry-missing", MANIFEST_NAME, message)


def _defines(harness: Harness, entry: str, attribute: list[str]) -> bool:
    """Return whether the module of an entry binds a dotted attribute, and true where its text does not say."""
    key = harness.closures[entry].get(module_name(entry), "")
    if not key.endswith(".py"):
        return True
    body = source.parse(harness.files[key]).body
    names, _ = _bound(body)
    return (attribute[0] not in names and "__getattr__" in names) or _leads(body, attribute)


def _leads(body: list[ast.stmt], attribute: list[str]) -> bool:
    """Return whether statements bind a dotted attribute, or may bind it."""
    names, open_ended = _bound(body)
    first, *below = attribute
    if first not in names:
        return open_ended
    return not below or any(_has(binding, below) for binding in names[first])


def _has(binding: ast.AST, attribute: list[str]) -> bool:
    """Return whether what a statement binds has a dotted attribute, or may have it."""
    if isinstance(binding, ast.ClassDef):
        # what a base class, a metaclass or a decorator adds is not looked for
        return bool(binding.bases or binding.keywords or binding.decorator_list) or _leads(binding.body, attribute)
    if isinstance(binding, ast.FunctionDef | ast.AsyncFunctionDef) and not binding.decorator_list:
        return hasattr(FunctionType, attribute[0])
    return True


def _bound(body: list[ast.stmt]) -> tuple[dict[str, list[ast.AST]], bool]:
    """Return the names that statements bind, each with all that binds it, and whether a star import adds more.

    An assignment to an attribute counts for the name in front: it may be what a dotted attribute leads to.
    """
    names: defaultdict[str, list[ast.AST]] = defaultdict(list)
    stars = False
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name].append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stars = stars or any(alias.name == "*" for alias in node.names)
            for alias in node.names:
                names[(alias.asname or alias.name).partition(".")[0]].append(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id].append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            owner: ast.AST = node
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name):
                names[owner.id].append(node)
        elif not isinstance(node, ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return names, stars
