"""Record a run under a harness: `tracemark.record` hands out the harness's parts and writes down what happens.

The harness is read from disk once. Prompts, tools, handlers and runtime code come from the bytes that were hashed then,
which is why a part that the run obtained here has evidence `recorded`. Everything is written to a journal in the inbox,
step by step, so a run that dies leaves a readable trace of what it did.

Invariants:
- a part that the run never asked for is only claimed, and so is a tool with an answer that its code was not called for,
  a handler with an observation that is not what it gave, or what the next handler made of that, a parser that was never
  called although the model replied, and a prompt of position `first` of which no rendering stands in its place;
- what disagrees with the harness is written down as a contradiction, never corrected: a prompt, a system message, a
  tool, more steps or calls than declared, a variable or a package of the process at the start or the end (decision 34);
- a recording goes on in the process that entered its block; a fork of that is refused, and writes nothing;
- a run whose harness folder has changed between load and end is marked as mixed, although nothing that ran changed;
- the same harness, run facts, events, clock and file name give the same bytes;
- what a trace cannot hold is refused by the call that brings it, before anything of it is written: the run goes on, and
  what it recorded is read back whole.

A run is only as well known as its weakest part, so ask for every part of the harness, whether this run will need it or
not: a reminder (a prompt of position `any`), a handler, the recovery, the context manager. Of these asking is enough,
`recorder.prompt("reminder")` for example; one that the run never asked for makes the whole run `claimed`. A prompt of
position `first` has to be sent as well, so one that some runs leave out is better declared with position `any`
(decision 25).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tracemark.clock import Clock, SystemClock
from tracemark.errors import UsageError
from tracemark.harness.capture import Captured
from tracemark.harness.match import Contradiction
from tracemark.harness.version import Harness
from tracemark.importers.journal_events import fault
from tracemark.model.harness import PromptTemplate
from tracemark.runner import folder, given, openai_client
from tracemark.runner.answers import Calls
from tracemark.runner.evidence import Evidence
from tracemark.runner.journal import Journal, claim, first_line, free_path
from tracemark.runner.live import Live, Prompt
from tracemark.runner.misuse import placed, telling
from tracemark.runner.openai_calls import Following
from tracemark.runner.openai_client import OpenAIClient
from tracemark.runner.process import Owner
from tracemark.runner.turns import Turns


class Recorder:
    """One run being recorded; use it as a `with` block. Made by `record`.

    Args:
        harness: the loaded harness.
        path: where the journal is written.
        start: the members of the journal's first line that the caller gives: `run` and `agent`.
        clock: tells the time of each event.
        counts_on: whether another name will do, should somebody have taken this one when the block is entered.
    """

    def __init__(
        self, harness: Harness, path: Path, start: Mapping[str, Any], clock: Clock, *, counts_on: bool = False
    ) -> None:
        self.harness = harness
        """The harness as it was loaded."""
        self.path = path
        """The journal; a name that was not given may change when the block is entered."""
        self._start = start
        self._clock = clock
        self._counts_on = counts_on
        # a run may change its working directory
        self._folder = None if harness.folder is None else harness.folder.absolute()
        self._live = Live(harness)
        self._bound = {name: harness.tool_schema(name) for name in harness.manifest.tool_bindings}
        self._journal: Journal | None = None
        self._owner = Owner()
        self._evidence = Evidence(harness, start["agent"], self._write)
        self._turns = Turns(harness, self._evidence, self._write, clock.now)
        self._runtime = Calls()
        self._client_calls: Following | None = None
        self._outcome = False

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """What disagrees with the harness so far: `component`, `part`, `step` and `text` of each place.

        A trace with a contradiction has no fingerprint, so a script does well to look here at the end of its block or
        behind it. What nobody but the reader of the journal would find, such as an observation that is too long, is
        found here as well. Empty when there is nothing.
        """
        return self._evidence.contradictions

    def __enter__(self) -> Self:
        """Write the harness's snapshot and open the journal.

        Raises:
            HarnessChangedError: when the folder on disk is not what was loaded.
            UsageError: when a journal of the name given exists, or in a fork of the process that entered it already.
        """
        self._owner.require(f"{self.path.name}: with")
        folder.require_as_loaded(self.harness, self._folder)
        folder.keep_snapshot(self.harness, self.path.parent)
        self._journal = claim(self.path.parent, self._start["run"]) if self._counts_on else Journal(self.path)
        self.path = self._journal.path
        self._owner.begin()
        try:
            facts = self._start["run"], self._start["agent"], self._clock.now()
            self._write("start", first_line(self.path.name, self.harness, *facts))
            self._evidence.surroundings()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the journal; a run that ends in an exception has status `error`, unless an outcome was recorded.

        Raises:
            UsageError: in another process than that of `__enter__`, unless an exception is on its way there already;
                the journal is left alone.
        """
        if self._owner.is_another and kind is not None:
            return
        self._owner.require(f"{self.path.name}: end of the block")
        try:
            if kind is not None and not self._outcome:
                stopped = issubclass(kind, (KeyboardInterrupt, SystemExit))
                self.outcome("error", termination="interrupted" if stopped else "exception")
            if self._client_calls is not None:
                self._client_calls.settle()
            self._evidence.settle(replied=self._turns.replies > 0, parsed=self._runtime.called("parser"))
            mixed = {"mixed": True} if folder.differs(self.harness, self._folder) else {}
            self._write("end", {"time": self._clock.now(), **mixed})
        finally:
            self._close()
            self._live.close()
        if kind is None and self._client_calls is not None:
            self._client_calls.raise_failure()

    @placed
    def openai(self, client: OpenAIClient) -> OpenAIClient:
        """Return a copy of an OpenAI client whose chat completions are recorded, in place of the calls by hand.

        Every request is compared and its new messages are recorded, and so is every reply, streamed or not; the program
        gets the SDK's own objects and errors. The client given is left as it was, for calls of other agents.

        Args:
            client: an `OpenAI` or `AsyncOpenAI`, or one like them such as `AzureOpenAI`.

        Raises:
            UsageError: when it is none. What the copy cannot record, such as the Responses API, it refuses to send.
        """
        if self._client_calls is None:
            parts = self._turns, self._evidence, self._runtime, self._write, self._require_open
            self._client_calls = Following(*parts, stated=self._start["run"])
        return openai_client.recorded(client, self._client_calls)

    @placed
    def prompt(self, name: str) -> Prompt:
        """Return the prompt template `name`; its `render` gives the text, in the process of the recording alone.

        Raises:
            UnknownNameError: when the harness has no such template.
        """
        prompt = self._live.prompt(name, self._rendered)
        self._evidence.obtained("prompt_templates", name)
        return prompt

    @placed
    def tools(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the definitions that the model is offered, in OpenAI's wrapper, sorted by name.

        Args:
            names: the tools of this run; None offers all.

        Raises:
            UsageError: when some are left out although the harness offers all, or one is not bound.
        """
        bound = self._bound
        wanted = sorted(bound) if names is None else given.names(names)
        if unknown := [name for name in wanted if name not in bound]:
            raise UsageError(f"not bound: {', '.join(unknown)}", hint="one of: " + ", ".join(sorted(bound)))
        if len(wanted) < len(bound) and self.harness.manifest.runtime.offered == "all":
            raise UsageError(
                "the harness offers every run all tools",
                hint="tools(), or `offered: subset` below `runtime` in harness.yaml",
            )
        for name in bound:
            self._evidence.obtained("tool_bindings", name)
        definitions = [{"type": "function", "function": bound[name]} for name in wanted]
        self._evidence.offered(definitions)
        return definitions

    @placed
    def tool(self, name: str) -> Callable[..., Any]:
        """Return the code behind the tool `name`, with its declared parameters bound; each call of it is counted.

        A call stands for an answer to the reply that was recorded last, so record the reply before its calls run.

        Raises:
            UnknownNameError: when the harness binds no such tool, or binds it without code.
        """
        function = self._live.tool(name)
        self._evidence.obtained("tool_bindings", name)
        return self._owned(self._turns.answers.counted(name, function), "tool", name)

    @placed
    def handler(self, name: str) -> Callable[..., Any]:
        """Return the observation handler `name`, with its declared parameters bound; what a call of it gives is known.

        A call stands for one result that the reply recorded last gets, and whose content is what it gave, or what the
        next handler made of that; a call in front of that reply stands for none. So record what the last handler of the
        list gave, as it is, and let errors pass the handlers too: a text that no call gave makes them `claimed`.

        Raises:
            UnknownNameError: when the harness has no such handler.
        """
        function = self._live.handler(name)
        self._evidence.obtained("observation_handlers", name)
        return self._owned(self._turns.handled.followed(name, function), "handler", name)

    @placed
    def runtime(self, part: str) -> Callable[..., Any]:
        """Return the code of `parser`, `context_manager` or `recovery`, with its declared parameters bound.

        Raises:
            UnknownNameError: when the harness declares none.
        """
        function = self._live.runtime(part)
        self._evidence.obtained("runtime", part)
        return self._owned(self._runtime.counted(part, function), "runtime", part)

    @placed
    def request(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Compare the first request to the model with what the harness gave; later requests are not looked at.

        Args:
            messages: as in OpenAI's chat format.
            tools: the definitions sent; None when the request has none and nothing is to be compared.

        Raises:
            UsageError: when one of them is no list of objects, or a definition is nothing that JSON can hold.
        """
        sent = given.objects(messages, "messages")
        offered = None if tools is None else given.plain(given.objects(tools, "tools"), "tools")
        self._evidence.request(sent, offered)

    @placed
    def system(self, text: str | Sequence[Mapping[str, Any]]) -> None:
        """Record a system message.

        Args:
            text: a text or content parts, see `user`.

        Raises:
            UsageError: when it is neither, or a trace cannot hold a part.
        """
        self._by_hand().said(given.said("system", text))

    @placed
    def user(self, text: str | Sequence[Mapping[str, Any]]) -> None:
        """Record a user message.

        Args:
            text: a text, or content parts as OpenAI or ATIF have them: texts, and images as `data:` URL. An image or a
                sound that lies elsewhere needs its type: `{"type": "image", "source": {"media_type", "path"}}`.

        Raises:
            UsageError: when it is neither, or a trace cannot hold a part.
        """
        self._by_hand().said(given.said("user", text))

    @placed
    def agent(
        self,
        message: str | Sequence[Mapping[str, Any]] | None,
        tool_calls: Iterable[Mapping[str, Any]] | None = (),
        reasoning_content: str | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a reply of the model.

        Args:
            message: the text as the model wrote it, or content parts, see `user`; empty or None when it only called
                tools.
            tool_calls: the calls as OpenAI has them, or `tool_call_id`, `function_name` and `arguments` (an object) of
                each; what else a call holds goes to its `extra`. Arguments that are no object are kept as they were
                written, as the importer of chats does.
            reasoning_content: the model's reasoning; None when it gave none.
            metrics: ATIF metrics of the call, or OpenAI's `usage`; what ATIF does not know goes to their `extra`. None
                when they are not known.

        Raises:
            UsageError: when one of them is nothing that a trace can hold, a call lacks one of its members, or two calls
                share an id.
        """
        self._by_hand().replied(given.reply(message, tool_calls, reasoning_content, metrics))

    @placed
    def observation(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Record what the model sees of the results of the last reply's calls.

        Args:
            results: `content` (a text or content parts, see `user`), and `source_call_id` or `tool_call_id` where the
                result answers a call; a result without one counts as the answer of every call that has none yet. What
                else a result holds, such as `is_error`, goes to its `extra`.

        Raises:
            UsageError: when there is no reply that it could belong to, a result answers none of its calls, or is
                nothing that a trace can hold. An object is no content: the model saw a text.
        """
        self._by_hand().shown(given.results(results))

    @placed
    def outcome(self, status: str | None = None, **facts: Any) -> None:
        """Record how the run ended; the last call counts.

        Args:
            status: `success`, `failure`, `error` or `unknown`; None leaves it to the reward.
            facts: `reward`, `checks`, `grader` {name, version}, `termination`, and `rule`, by which the status follows
                from them, in words.

        Raises:
            UsageError: for another member or a value that is not allowed.
        """
        outcome = given.outcome_facts({"status": status, **facts})
        self._write("outcome", {"outcome": outcome})
        self._outcome = True

    def _owned(self, function: Callable[..., Any], kind: str, name: str) -> Callable[..., Any]:
        return self._owner.bound(function, f"{self.path.name}: a call of {kind}({name!r})")

    def _rendered(self, template: PromptTemplate, text: str) -> None:
        self._owner.require(f"{self.path.name}: render() of {template.name!r}")
        self._evidence.rendered(template, text)

    def _close(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            self._owner.end()
            journal.close()

    def _by_hand(self) -> Turns:
        if self._client_calls is not None:
            raise UsageError("a client is listened to, which records this", hint="leave the call out")
        return self._turns

    def _require_open(self) -> None:
        self._owner.require(f"{self.path.name}: a request of a client")
        if self._journal is None:
            raise UsageError("the recording is not open", hint="use it as: with tracemark.record(…) as recorder")

    def _write(self, event: str, members: dict[str, Any]) -> None:
        if self._journal is None:
            self._require_open()
            return
        whole = {"event": event, **members}
        wrong = fault(whole)
        if wrong is not None:
            raise UsageError(f"what was recorded cannot be read back: {wrong}", where=self.path.name)
        self._journal.write(whole)


def record(
    harness: Path | Harness | Captured,
    inbox: Path,
    run: Mapping[str, Any] | None = None,
    agent: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    clock: Clock | None = None,
) -> Recorder:
    """Return a recorder for one run, to be used in a `with` block.

    Args:
        harness: a harness folder, or a harness loaded from one or captured, which serves any number of runs.
        inbox: the batch's folder, made when missing.
        run: facts of the run: task, domain, split, attempt, seed, mode, model, sampling, environment, role, continues,
            continued_by, rendered, demonstration, note; what each is, stands under *Run* of the stored values. Start
            and end are the recorder's to tell.
        agent: `name` and `version` of the agent, and ATIF's optional `model_name` and `extra`, to which goes whatever
            else is stated.
        name: the journal's name without suffix; None derives it from task and attempt.
        clock: tells the time; None means the machine's clock.

    Raises:
        ManifestError: when the folder is no usable harness, or a part of what was captured is unrecorded.
        UsageError: when a run fact is unknown, a fact or label is nothing that a trace can hold, or the name is no file
            name.
    """
    with telling("tracemark.record()", "tracemark.record"):
        facts, who = given.run_facts(run), given.agent_facts(agent)
        path = free_path(Path(inbox).absolute(), name, facts)
    start = {"run": facts, "agent": who}
    return Recorder(folder.loaded(harness), path, start, clock or SystemClock(), counts_on=name is None)
