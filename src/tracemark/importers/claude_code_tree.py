"""The records of a Claude Code session, sorted into the contexts in which the model spoke.

A session's file is a log of a tree: each record names the one in front of it. One file may hold several contexts, and
each is a conversation of its own: another session's records that do not hang on this one's; what follows the command
`/clear`, after which nothing of before is seen; and a fresh root that another version of the program wrote. Records
that hang on one another are never torn apart.

Within a context, a user who goes back to an earlier message begins another branch. The branch of the last record is
what the model saw at the end; of the others only what belongs to it is kept there: the blocks of one reply and the
answers to its calls hang on one another crosswise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tracemark.importers.session_lines import Line

COMPACTIONS = {"compact_boundary": "compaction", "microcompact_boundary": "pruning"}
"""Subtype of a system record to the kind of change that it makes to the context."""

NOTES = ("system", "attachment")
"""Types of records that stand in the tree beside messages."""

_CLEAR = "<command-name>/clear</command-name>"


@dataclass(slots=True)
class Context:
    """One conversation of a file."""

    session: str | None
    """The id of its session; None when no record says."""
    lines: list[Line] = field(default_factory=list)
    """Its records in the order of the file."""
    abandoned: list[Line] = field(default_factory=list)
    """Records of branches that the user went back from."""
    sidechains: dict[str, list[Line]] = field(default_factory=dict)
    """The records of its sub-agents, by the name of each."""
    is_sidechain: bool = False
    """Whether the conversation is a sub-agent's, whose caller is in another file."""
    version: str | None = None
    """The version that the last record names."""
    sessions: set[str | None] = field(default_factory=set)
    """The ids under which records without a known parent are its own."""
    is_spoken: bool = False
    """Whether a record of it holds a message."""
    leaf: str | None = None
    """The name of the last record with a message."""
    parents: set[str] = field(default_factory=set)
    """The records on which others hang."""
    is_branched: bool = False
    """Whether several hang on one."""


def role_of(value: dict[str, Any]) -> str | None:
    """Return the role of the message in a record; None for a record without a message."""
    message = value.get("message")
    if not isinstance(message, dict) or value.get("type", "user") not in ("user", "assistant"):
        return None
    role = message.get("role", value.get("type"))
    return role if isinstance(role, str) else str(role)


def session_of(value: dict[str, Any]) -> str | None:
    """Return the id of the session that a record names; None when it names none."""
    said = value.get("sessionId", value.get("session_id"))
    return said if isinstance(said, str) else None


def is_record(value: dict[str, Any]) -> bool:
    """Return whether an object of the file is a record of any kind that the format has, also one not known here."""
    kind = value.get("type")
    if kind in ("user", "assistant") or kind is None:
        return role_of(value) is not None
    return isinstance(kind, str)


def contexts(lines: list[Line], repairs: list[str]) -> list[Context]:
    """Return the conversations of a file, those without a message left out.

    Args:
        lines: its records in order.
        repairs: gets a note where records stood twice.
    """
    sorter = _Sorter()
    for line in _latest(lines, repairs):
        sorter.add(line)
    found = [one for one in sorter.contexts if one.is_spoken]
    if found:
        if sorter.stray:
            found[0].lines = sorted([*sorter.stray, *found[0].lines], key=attrgetter("number"))
        for key, side in sorter.sidechains.items():
            owner = sorter.owners[key]
            (owner if owner in found else found[0]).sidechains[key] = side
    else:
        found = [
            Context(session_of(side[0].value), side, is_sidechain=True)
            for side in sorter.sidechains.values()
            if any(role_of(line.value) is not None for line in side)
        ]
    for one in found:
        _prune(one)
    return found


def text_of_prompt(value: dict[str, Any]) -> str | None:
    """Return the text of a record's message when it is a plain text, or a single text part; None otherwise."""
    content = value["message"].get("content") if isinstance(value.get("message"), dict) else None
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else None


def _latest(lines: list[Line], repairs: list[str]) -> list[Line]:
    """Return each record once: of several with one id the last, in the place of the first."""
    names = [_name(line.value) for line in lines]
    last = {name: line for name, line in zip(names, lines, strict=True) if name is not None}
    if len(last) + names.count(None) == len(lines):
        return lines
    repairs.append("records that stand in the file twice: the last one counts")
    found: list[Line] = []
    for name, line in zip(names, lines, strict=True):
        if name is None:
            found.append(line)
        elif name in last:
            found.append(last.pop(name)._replace(number=line.number))
    return found


class _Sorter:
    """Gives each record to its conversation, in the order of the file."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.sidechains: dict[str, list[Line]] = {}
        self.owners: dict[str, Context | None] = {}
        self.stray: list[Line] = []
        self._of_record: dict[str, Context | str | None] = {}
        self._of_session: dict[str | None, Context] = {}
        self._current: Context | None = None

    def add(self, line: Line) -> None:
        value = line.value
        name, parent = _name(value), _parent(value)
        if self._is_aside(value):
            key = self._sidechain(value, parent)
            if key not in self.sidechains:
                self.owners[key] = self._last(session_of(value))
            self.sidechains.setdefault(key, []).append(line)
            if name is not None:
                self._of_record[name] = key
            return
        role = role_of(value)
        context = self._context(value, parent, role)
        if context is None:
            self.stray.append(line)
            return
        context.lines.append(line)
        if role is not None:
            context.is_spoken, context.leaf = True, name or context.leaf
        if parent is not None and name is not None:
            context.is_branched = context.is_branched or parent in context.parents
            context.parents.add(parent)
        if isinstance(value.get("version"), str):
            context.version = value["version"]
        is_clear = role == "user" and (text_of_prompt(value) or "").lstrip().startswith(_CLEAR)
        if name is not None:
            self._of_record[name] = None if is_clear else context
        if is_clear:
            self._close(context)

    def _is_aside(self, value: dict[str, Any]) -> bool:
        return bool(value.get("isSidechain")) or isinstance(value.get("parent_tool_use_id"), str)

    def _sidechain(self, value: dict[str, Any], parent: str | None) -> str:
        """Return the name of the sub-agent that a record is of: its own, its call's, or that of its first record."""
        for name in ("agentId", "parent_tool_use_id"):
            said = value.get(name)
            if isinstance(said, str) and said:
                return said
        known = None if parent is None else self._of_record.get(parent)
        if isinstance(known, str):
            return known
        return _name(value) or "sidechain"

    def _context(self, value: dict[str, Any], parent: str | None, role: str | None) -> Context | None:
        """Return the conversation of a record, a new one where it begins one; None where there is none yet."""
        session = session_of(value)
        known = None if parent is None else self._of_record.get(parent)
        if isinstance(known, Context):
            return self._own(session, known)
        last = self._last(session)
        opens = role is not None or value.get("type") in NOTES
        if last is not None and not (opens and self._is_fresh(value, last)):
            return last
        if not opens:
            return self.contexts[-1] if self.contexts else None
        context = Context(session)
        self.contexts.append(context)
        return self._own(session, context)

    def _own(self, session: str | None, context: Context) -> Context:
        """Give to a conversation what of a session comes next."""
        self._of_session[session] = self._current = context
        context.sessions.add(session)
        return context

    def _close(self, context: Context) -> None:
        for session in context.sessions:
            if self._of_session.get(session) is context:
                del self._of_session[session]
        if self._current is context:
            self._current = None

    def _last(self, session: str | None) -> Context | None:
        return self._current if session is None else self._of_session.get(session)

    @staticmethod
    def _is_fresh(value: dict[str, Any], last: Context) -> bool:
        """Return whether a record begins a context in which nothing of before is seen, under another version."""
        if "parentUuid" not in value or _parent(value) is not None or role_of(value) != "user":
            return False
        if value.get("isCompactSummary") or value.get("isMeta") or text_of_prompt(value) is None:
            return False
        version = value.get("version")
        return isinstance(version, str) and last.version not in (None, version)


def _name(value: dict[str, Any]) -> str | None:
    name = value.get("uuid")
    return name if isinstance(name, str) else None


def _parent(value: dict[str, Any]) -> str | None:
    for name in ("parentUuid", "logicalParentUuid", "leafUuid"):
        said = value.get(name)
        if isinstance(said, str):
            return said
    return None


def _prune(context: Context) -> None:
    """Move the records of branches that do not lead to the last message to `abandoned`."""
    if not context.is_branched or context.leaf is None:
        return
    parents = {name: _parent(line.value) for line in context.lines if (name := _name(line.value)) is not None}
    leaf: str | None = context.leaf
    path: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    replies, calls = _belonging(context.lines, path)
    kept: list[Line] = []
    gone: set[str] = set()
    for line in context.lines:
        name, parent = _name(line.value), _parent(line.value)
        off = name is not None and name not in path and parent is not None and (parent in path or parent in gone)
        if off and not _belongs(line.value, replies, calls) and (role_of(line.value) is not None or parent in gone):
            gone.add(str(name))
            context.abandoned.append(line)
        else:
            kept.append(line)
    context.lines = kept


def _belonging(lines: list[Line], path: set[str]) -> tuple[set[str], set[str]]:
    """Return the ids of the replies on a path, and of all calls in them."""
    replies = {
        line.value["message"]["id"] for line in lines if _name(line.value) in path and _reply(line.value) is not None
    }
    calls = {
        block["id"]
        for line in lines
        if _reply(line.value) in replies or _name(line.value) in path
        for block in _blocks(line.value)
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }
    return replies, calls


def _belongs(value: dict[str, Any], replies: set[str], calls: set[str]) -> bool:
    if _reply(value) is not None:
        return _reply(value) in replies
    blocks = _blocks(value)
    return bool(blocks) and all(
        block.get("type") == "tool_result"
        and isinstance(block.get("tool_use_id"), str)
        and block["tool_use_id"] in calls
        for block in blocks
    )


def _reply(value: dict[str, Any]) -> str | None:
    """Return the id of the reply that a record is a block of; None when it is none."""
    if role_of(value) != "assistant":
        return None
    name = value["message"].get("id")
    return name if isinstance(name, str) else None


def _blocks(value: dict[str, Any]) -> list[dict[str, Any]]:
    content = value["message"].get("content") if isinstance(value.get("message"), dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
