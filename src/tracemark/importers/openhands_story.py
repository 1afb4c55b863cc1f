"""What happened in an OpenHands session, in order, before it becomes steps: events of both generations come to this.

An event is no step. One reply of the model may be several events, one for each call, with what the calls gave between
them; what a call gave may stand in front of it; and much is told that no model saw. So events are first put in their
places, and the conversation is written afterwards, each reply with its answers behind it.

Invariants:
- every event is in the story once: as a message, a reply, an answer, a change of the context, or a note beside it;
- an answer goes to the call that it names, wherever that stands; without such a call it stands by itself, unlinked;
- what the model saw in a form that the session does not hold is marked (`content_missing`, or an event of its own), so
  that no export takes it for what was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tracemark.importers import supplied
from tracemark.importers.conversation import Conversation
from tracemark.importers.members import fill, without_null

UNSEEN = "content_missing"
"""Mark in the `extra` of a message or an answer of which the model saw another text than the one that is held."""

CONDENSED = {"type": "compaction", "boundary": "replace"}
"""`extra.context_management` where earlier messages were left out of what the model is sent."""

_ORPHAN = "answers to calls that are not there: put under system steps of their own"
_NAMED = "tool calls without an id: named after their event"
_LATE = "answers that stood in front of their call, or behind what followed it: put behind the call"


@dataclass(slots=True, eq=False)
class Entry:
    """One thing that happened; it becomes one step, or none."""

    kind: Literal["reply", "message", "event", "note", "waiting"]
    """`note` becomes no step, and `waiting` is an answer whose call was not seen yet."""
    body: dict[str, Any]
    """The chat message that it becomes; of a note the event itself; of a waiting answer what it gives."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    """What its calls gave, each with the `tool_call_id` that its producer used."""
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What else is known of its calls, by their position: goes to the `extra` of each.

    Of `action_args`, the arguments of the action that was made of a call, what the call does not say.
    """
    metrics: dict[str, Any] = field(default_factory=dict)
    is_supplied: bool = False
    """Whether a reply is of someone else than the agent."""
    change: str | None = None
    """In which way another harness is at work from here on, in words; None when none is."""
    refers: tuple[str, ...] = ()
    """Of a waiting answer, the keys of its call, the surest first."""


class Told:
    """The steps that a story became.

    Args:
        repairs: gets what was altered on the way.
    """

    def __init__(self, repairs: list[str]) -> None:
        self._repairs = repairs
        self._conversation = Conversation(repairs)
        self.steps = self._conversation.steps
        """The steps."""
        self.notes: list[dict[str, Any]] = []
        """Events that are no steps, each with the number of steps in front of it."""
        self.mixed: list[str] = []
        """Where another harness took over, with the step."""

    def add(self, entry: Entry, place: str) -> None:
        """Add one entry."""
        if entry.kind == "note":
            self.notes.append({**entry.body, "behind_steps": len(self.steps)})
            return
        step = self._conversation.add(entry.body, place)
        if entry.change is not None:
            self.mixed.append(f"step {step['step_id']}: {entry.change}")
        if entry.metrics:
            step["metrics"] = entry.metrics
        if entry.is_supplied:
            supplied.mark(step, self._repairs)
        for position, known in entry.calls.items():
            if known and position < len(step.get("tool_calls", ())):
                call = step["tool_calls"][position]
                if isinstance(known.get("action_args"), dict):
                    known["action_args"] = _new(known["action_args"], call["arguments"], step["message"])
                fill(call.setdefault("extra", {}), known)
        if entry.answers and step["source"] == "user":
            # what a user ran is no observation of the agent
            fill(step.setdefault("extra", {}), {"user_tool_results": [*map(without_null, entry.answers)]})
            return
        if entry.answers and step["source"] == "system":
            step["observation"] = {"results": []}
        for answer in entry.answers:
            self._conversation.add({**answer, "role": "tool"}, place)


class Story:
    """Collects the entries of one agent.

    Args:
        repairs: gets what is altered on the way.
    """

    def __init__(self, repairs: list[str]) -> None:
        self.repairs = repairs
        self.entries: list[Entry] = []
        """In the order in which they happened."""
        self.last_reply: Entry | None = None
        """The latest reply of the model."""
        self._last: Entry | None = None
        self._calls: dict[str, tuple[Entry, Any]] = {}

    def add(self, entry: Entry) -> Entry:
        """Add an entry and return it."""
        self.entries.append(entry)
        if entry.kind == "reply":
            self.last_reply = entry
        if entry.kind not in ("note", "waiting"):
            self._last = entry
        return entry

    def note(self, event: Any) -> None:
        """Add an event that no model saw; of an object, its null members are left out."""
        body = without_null(event) if isinstance(event, dict) else {"original_event": event}
        self.add(Entry("note", body))

    def made_id(self, event: Mapping[str, Any]) -> str | None:
        """Return an id for the call that an event is, where no other is known; None when the event has none."""
        if event.get("id") is None:
            return None
        self.repairs.append(_NAMED)
        return f"event_{event['id']}"

    def name_call(self, entry: Entry, said: Any, *keys: str) -> None:
        """Let answers that refer to one of `keys` go to the call that its producer named `said`."""
        for key in keys:
            self._calls[key] = (entry, said)

    def answer(self, body: dict[str, Any], *keys: str) -> Entry | None:
        """Give an answer to the call that the first known of `keys` names; else let it wait for that call.

        Returns:
            The entry that got it; None when it waits.
        """
        for key in keys:
            if key in self._calls:
                entry = self._give(body, key)
                if entry is not self._last:
                    self.repairs.append(_LATE)
                return entry
        self.add(Entry("waiting", body, refers=keys))
        return None

    def told(self) -> Told:
        """Return the steps.

        Raises:
            UnknownRoleError: when it is not known who spoke.
        """
        kept = [entry for entry in self.entries if entry.kind != "waiting" or not self._was_awaited(entry)]
        told = Told(self.repairs)
        for number, entry in enumerate(kept):
            told.add(self._alone(entry) if entry.kind == "waiting" else entry, f"entry {number}")
        return told

    def _give(self, body: dict[str, Any], key: str) -> Entry:
        entry, said = self._calls[key]
        given = {name: value for name, value in body.items() if name != "tool_call_id"}
        entry.answers.append({**given, "tool_call_id": said} if said is not None else given)
        return entry

    def _was_awaited(self, entry: Entry) -> bool:
        key = next((one for one in entry.refers if one in self._calls), None)
        if key is None:
            return False
        self.repairs.append(_LATE)
        self._give(entry.body, key)
        return True

    def _alone(self, entry: Entry) -> Entry:
        """Return the operation of the system that an answer without its call is."""
        self.repairs.append(_ORPHAN)
        answer = dict(entry.body)
        said = answer.pop("tool_call_id", None)
        if said is not None:
            answer["original_call_id"] = said
        return Entry("event", {"role": "system", "content": ""}, [answer])


def place_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return when an event was, and its id, as members of what it becomes."""
    return without_null({"timestamp": event.get("timestamp"), "event_id": event.get("id")})


def _new(args: Mapping[str, Any], arguments: Mapping[str, Any], thought: Any) -> dict[str, Any] | None:
    """Return those arguments of an action that neither the call nor the text beside it says; None for none."""
    found = {}
    for name, value in args.items():
        if value is None or (name in arguments and arguments[name] == value):
            continue
        if name != "thought" or value not in ("", thought):
            found[name] = value
    return found or None


def texts(parts: Iterable[Any]) -> list[str] | None:
    """Return the texts of parts that are nothing but text; None when one of them is something else."""
    found = []
    for part in parts:
        if not (isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str)):
            return None
        found.append(part["text"])
    return found
