"""Play all tasks under one harness version and leave one journal per run in an inbox.

    python domains/support_desk/play.py --harness harness_versions/desk-plain --inbox inbox/desk-plain --seed 7

Each run has its own copy of the desk and its own clock, so the same arguments give the same bytes. Prompts, tools,
handler, reply parser and limit come from the recorder, which hands out the very text that it hashed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

# Run as a script, the package's own folder comes first on the path; its parent has to stand there instead.
if sys.path[0] == str(Path(__file__).resolve().parent):
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from support_desk import agent as desk_agent
from support_desk import grader, reading, tasks
from support_desk.environment import Environment
from support_desk.grader import Verdict
from support_desk.tasks import Task
from tracemark import record
from tracemark.clock import FixedClock
from tracemark.errors import TracemarkError, UsageError
from tracemark.harness.loading import load
from tracemark.harness.version import Harness
from tracemark.runner.record import Recorder

POLICY = Path(__file__).with_name("policy.md")
DOMAIN = "support_desk"
MODEL = {"name": "scripted", "revision": "1"}
SECONDS_BETWEEN_RUNS = 60
SECONDS_BETWEEN_EVENTS = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What to play.

    Attributes:
        harness: the folder of the harness version.
        inbox: the folder that gets the journals; must hold none yet.
        attempts: runs of each task, at least 1.
        seed: decides, with task and attempt, which mistakes the agent makes.
    """

    harness: Path
    inbox: Path
    attempts: int = 2
    seed: int = 7


def play(options: Options) -> dict[tuple[str, int], Verdict]:
    """Play every task under the harness and return the verdict of each (task, attempt).

    Raises:
        UsageError: when the inbox holds journals already, which a second play would stand beside.
        TracemarkError: when the harness cannot be loaded or a journal cannot be written.
    """
    if any(options.inbox.glob("*.journal.jsonl")):
        raise UsageError("the inbox holds journals already", where=str(options.inbox), hint="name another folder")
    harness = load(options.harness)
    moments = FixedClock(tasks.START, SECONDS_BETWEEN_RUNS)
    verdicts = {}
    for task in tasks.all_tasks():
        for attempt in range(options.attempts):
            verdicts[task.task_id, attempt] = _play_one(harness, options, task, attempt, moments.now())
    return verdicts


def _play_one(harness: Harness, options: Options, task: Task, attempt: int, start: str) -> Verdict:
    """Play one task once, from the moment `start` on."""
    environment = Environment(FixedClock(start))
    run = {
        "task": task.task_id,
        "domain": DOMAIN,
        "split": task.split,
        "attempt": attempt,
        "seed": options.seed,
        "model": MODEL,
    }
    agent = {"name": desk_agent.NAME, "version": desk_agent.VERSION}
    clock = FixedClock(start, SECONDS_BETWEEN_EVENTS)
    with record(harness=harness, inbox=options.inbox, run=run, agent=agent, clock=clock) as recorder:
        answer = _converse(recorder, environment, task, f"{options.seed}/{task.task_id}/{attempt}")
        verdict = grader.grade(task, environment, answer or "")
        recorder.outcome(
            status="success" if verdict.success else "failure",
            reward=1.0 if verdict.success else 0.0,
            grader={"name": grader.NAME, "version": grader.VERSION},
            termination="max_steps" if answer is None else "agent_stop",
        )
    environment.close()
    return verdict


def _converse(recorder: Recorder, environment: Environment, task: Task, seed: str) -> str | None:
    """Let the agent work until it answers; return its last message, or None when the harness stops it before."""
    policy = POLICY.read_text(encoding="utf-8").strip()
    system = recorder.prompt("system").render(policy=policy, today=environment.today())
    request = recorder.prompt("task").render(request=task.request)
    tools = recorder.tools()
    recorder.request(
        messages=[{"role": "system", "content": system}, {"role": "user", "content": request}], tools=tools
    )
    recorder.system(system)
    recorder.user(request)
    parse, observe = recorder.runtime("parser"), recorder.handler("observe")
    work = desk_agent.Agent(system, request, seed).work()
    reply = next(work)
    for step in range(recorder.harness.manifest.runtime.limits.steps or sys.maxsize):
        message, calls = parse(reply.text)
        if not calls:
            recorder.agent(message)
            return str(message)
        ((tool, arguments),) = calls
        call_id = f"call-{step + 1}"
        recorder.agent(message, [{"tool_call_id": call_id, "function_name": tool, "arguments": arguments}])
        observation = observe(recorder.tool(tool)(environment, **arguments))
        recorder.observation([{"source_call_id": call_id, "content": observation}])
        reply = work.send(reading.read(observation))
    return None


def main(arguments: list[str]) -> int:
    """Play as the command line says and return the exit code."""
    parser = argparse.ArgumentParser(description="Play all support desk tasks under one harness version.")
    parser.add_argument("--harness", type=Path, required=True, help="folder of the harness version")
    parser.add_argument("--inbox", type=Path, required=True, help="folder that gets one journal per run")
    parser.add_argument("--attempts", type=int, default=2, help="runs of each task (default: 2)")
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
