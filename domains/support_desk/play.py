"""Play the tasks under one harness version and leave one journal per run in an inbox.

    python domains/support_desk/play.py --harness harness_versions/desk-plain --inbox inbox/desk-plain --seed 7

The agent's base strength plays every training task twice; every task that only measures is played by each strength,
four times. Each run has its own copy of the desk and its own clock, so the same arguments give the same bytes. Prompts,
tools, handler, reply parser and limit come from the recorder, which hands out the very text that it hashed.

Each run also has its own luck, as a reply that a model samples has: it is drawn from the seed, the harness's
fingerprint, the strength, the task and the attempt. Two harnesses are therefore two independent draws, also where one
says and does the very same as the other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Run as a script, the package's own folder comes first on the path; its parent has to stand there instead.
if sys.path[0] == str(Path(__file__).resolve().parent):
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from support_desk import agent as desk_agent
from support_desk import grader, reading, tariff, tasks
from support_desk.environment import Environment
from support_desk.grader import Verdict
from support_desk.habits import STRENGTHS
from support_desk.tasks import Task
from tracemark import engine, record
from tracemark.clock import FixedClock
from tracemark.errors import TracemarkError, UsageError
from tracemark.harness.loading import load
from tracemark.harness.version import Harness
from tracemark.runner.record import Recorder

POLICY = Path(__file__).with_name("policy.md")
DOMAIN = "support_desk"
TRAINING_ATTEMPTS = 2
SECONDS_BETWEEN_RUNS = 60
SECONDS_BETWEEN_EVENTS = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What to play.

    Attributes:
        harness: the folder of the harness version.
        inbox: the folder that gets the journals; must hold none yet.
        attempts: runs of each measuring task by each strength, at least 1.
        seed: decides, with all that tells one run from another, which mistakes the agent makes.
    """

    harness: Path
    inbox: Path
    attempts: int = 4
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Turn:
    """One run to be played: who plays which task for the how many-th time."""

    task: Task
    strength: str
    attempt: int

    @property
    def name(self) -> str:
        """What it is called, and its journal."""
        return f"{self.task.task_id}-{self.strength}-{self.attempt}"

    def luck(self, seed: int, fingerprint: str) -> str:
        """Return the text from which the run's dice are thrown."""
        return f"{seed}/{fingerprint}/{self.strength}/{self.task.task_id}/{self.attempt}"


def turns(attempts: int) -> Iterator[Turn]:
    """Yield the runs that are played under each harness, in order."""
    for task in tasks.all_tasks():
        training = task.split == "train"
        for strength in ("base",) if training else STRENGTHS:
            for attempt in range(TRAINING_ATTEMPTS if training else attempts):
                yield Turn(task, strength, attempt)


def play(options: Options) -> dict[str, Verdict]:
    """Play everything under the harness and return the verdict of each run, by the name of its turn.

    Raises:
        UsageError: when the inbox holds journals already, which a second play would stand beside.
        TracemarkError: when the harness cannot be loaded or a journal cannot be written.
    """
    if any(options.inbox.glob("*.journal.jsonl")):
        raise UsageError("the inbox holds journals already", where=str(options.inbox), hint="name another folder")
    harness = load(options.harness)
    moments = FixedClock(tasks.START, SECONDS_BETWEEN_RUNS)
    played = list(turns(options.attempts))
    # each run stands for itself, so they are played on all cores
    verdicts = engine.run(partial(_play_one, harness, options), [(turn, moments.now()) for turn in played])
    return dict(zip((turn.name for turn in played), verdicts, strict=True))


def _play_one(harness: Harness, options: Options, job: tuple[Turn, str]) -> Verdict:
    """Play one turn, from its moment of start on."""
    turn, start = job
    environment = Environment(FixedClock(start))
    run = {
        "task": turn.task.task_id,
        "domain": DOMAIN,
        "split": turn.task.split,
        "attempt": turn.attempt,
        "seed": options.seed,
        "model": {"name": desk_agent.NAME, "revision": turn.strength},
    }
    who = {"name": desk_agent.NAME, "version": desk_agent.VERSION}
    clock = FixedClock(start, SECONDS_BETWEEN_EVENTS)
    luck = turn.luck(options.seed, harness.identity.fingerprint)
    with record(harness=harness, inbox=options.inbox, run=run, agent=who, name=turn.name, clock=clock) as recorder:
        answer = _converse(recorder, environment, turn, luck)
        verdict = grader.grade(turn.task, environment, answer or "")
        recorder.outcome(
            status="success" if verdict.success else "failure",
            reward=1.0 if verdict.success else 0.0,
            grader={"name": grader.NAME, "version": grader.VERSION},
            termination="max_steps" if answer is None else "agent_stop",
        )
    environment.close()
    return verdict


def _converse(recorder: Recorder, environment: Environment, turn: Turn, luck: str) -> str | None:
    """Let the agent work until it answers; return its last message, or None when the harness stops it before."""
    policy = POLICY.read_text(encoding="utf-8").strip()
    system = recorder.prompt("system").render(policy=policy, today=environment.today())
    request = recorder.prompt("task").render(request=turn.task.request)
    tools = recorder.tools()
    recorder.request(
        messages=[{"role": "system", "content": system}, {"role": "user", "content": request}], tools=tools
    )
    recorder.system(system)
    recorder.user(request)
    said = [json.dumps(tools), system, request]
    parse, observe = recorder.runtime("parser"), recorder.handler("observe")
    work = desk_agent.Agent(system, request, luck, STRENGTHS[turn.strength]).work()
    reply = next(work)
    for step in range(recorder.harness.manifest.runtime.limits.steps or sys.maxsize):
        message, calls = parse(reply.text)
        metrics = tariff.bill(said, reply.text)
        if not calls:
            recorder.agent(message, metrics=metrics)
            return str(message)
        ((tool, arguments),) = calls
        call_id = f"call-{step + 1}"
        call = {"tool_call_id": call_id, "function_name": tool, "arguments": arguments}
        recorder.agent(message, [call], metrics=metrics)
        observation = observe(recorder.tool(tool)(environment, **arguments))
        recorder.observation([{"source_call_id": call_id, "content": observation}])
        said += [reply.text, observation]
        reply = work.send(reading.read(observation))
    return None


def main(arguments: list[str]) -> int:
    """Play as the command line says and return the exit code."""
    parser = argparse.ArgumentParser(description="Play all support desk tasks under one harness version.")
    parser.add_argument("--harness", type=Path, required=True, help="folder of the harness version")
    parser.add_argument("--inbox", type=Path, required=True, help="folder that gets one journal per run")
    parser.add_argument("--attempts", type=int, default=4, help="runs of each measuring task (default: 4)")
    parser.add_argument("--seed", type=int, default=7, help="decides which mistakes the agent makes (default: 7)")
    options = Options(**vars(parser.parse_args(arguments)))
    try:
        verdicts = play(options)
    except TracemarkError as problem:
        print(f"play: {problem}", file=sys.stderr)
        return problem.exit_code
    succeeded = sum(verdict.success for verdict in verdicts.values())
    print(f"{len(verdicts)} runs under {options.harness.name}: {succeeded} succeeded", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
