"""Write N realistic ATIF v1.8 trajectories under six harnesses, deterministically.

    make_traces.py N OUT_DIR [SEED]

OUT_DIR/harness_versions/h0 … h5/   harness.yaml, prompts/system.md, tools/*.json, handlers/observe.py
OUT_DIR/inbox/h0.jsonl … h5.jsonl   one trajectory a line, about 30 KB and 20 steps each; shares 1, 2, 4, 8, 30, 55 %

The system step equals the harness's prompt, agent.tool_definitions equals its tools, observations are cut as its
handler cuts them, and extra.tracemark holds run and outcome (42 % successes). Observations are slices of the standard
library's sources, listings and test logs.
"""

from __future__ import annotations

import json
import random
import sys
import sysconfig
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

SHARES = [1, 2, 4, 8, 30, 55]
TOOL_NAMES = {
    "bash": ("Run a shell command in the sandbox.", ["command", "timeout"]),
    "read_file": ("Read a slice of a file.", ["path", "offset", "limit"]),
    "edit": ("Replace text in a file.", ["path", "old", "new"]),
    "search": ("Search the repository.", ["query", "glob"]),
    "submit": ("Finish the task.", ["answer"]),
}
MODELS = ["qwen3-8b@base", "qwen3-8b@sft1", "qwen3-8b@sft2", "qwen3-32b@base"]


def texts() -> tuple[list[tuple[str, str]], list[str]]:
    """Return (file name, source) pairs and the docstring paragraphs in them."""
    pool: list[tuple[str, str]] = []
    total = 0
    for name in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"), key=str):
        if "site-packages" in name.parts:
            continue
        try:
            source = name.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if len(source) < 2000:
            continue
        pool.append(("lib/" + name.name, source))
        total += len(source)
        if total > 24_000_000:
            break
    docs = [" ".join(part.split()) for _, s in pool for part in s.split('"""')[1::2]]
    return pool, [d for d in docs if 60 < len(d) < 600]


def make_harness(index: int, folder: Path, docs: list[str], rng: random.Random) -> tuple[str, list[Any]]:
    """Write one harness version; return its system prompt and tool definitions."""
    prompt = f"You are a careful software agent (rules {index}). " + " ".join(rng.choice(docs) for _ in range(6))
    tools: list[Any] = []
    for name, (text, keys) in TOOL_NAMES.items():
        properties = {k: {"type": "string", "description": rng.choice(docs)[:120]} for k in keys}
        description = f"{text} {rng.choice(docs)}"
        parameters = {"type": "object", "properties": properties, "required": keys[:1]}
        function = {"name": name, "description": description, "parameters": parameters}
        tools.append({"type": "function", "function": function})
    for sub in ("prompts", "tools", "handlers"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    (folder / "prompts/system.md").write_text(prompt, encoding="utf-8")
    lines = [
        "format: tracemark/harness/1",
        f"name: h{index}",
        "prompt_templates:",
        "  - {name: system, file: prompts/system.md, syntax: literal, role: system, position: first}",
        "tool_bindings:",
    ]
    for tool in tools:
        name = tool["function"]["name"]
        (folder / f"tools/{name}.json").write_text(json.dumps(tool, indent=1), encoding="utf-8")
        lines.append(f"  {name}: {{schema: tools/{name}.json, mutates: {str(name == 'edit').lower()}}}")
    (folder / "handlers/observe.py").write_text(
        f"LIMIT = {4000 + index}\n\n\ndef handle(text: str) -> str:\n"
        '    """Cut an observation."""\n    return text[:LIMIT]\n'
    )
    lines += [
        "observation_handlers:",
        f"  - {{name: cut, entry: 'handlers/observe.py:handle', max_characters: {4000 + index}}}",
        "",
    ]
    (folder / "harness.yaml").write_text("\n".join(lines), encoding="utf-8")
    return prompt, tools


def observation(r: random.Random, pool: list[tuple[str, str]]) -> tuple[str, str]:
    """Return a file name and an observation text of 40 to 12,000 characters."""
    name, source = r.choice(pool)
    n = min(max(int(r.lognormvariate(5.82, 0.75)), 40), 12000)
    kind = r.random()
    if kind < 0.55:
        start = r.randrange(0, max(1, len(source) - n))
        return name, source[start : start + n]
    if kind < 0.75:
        return name, "\n".join(
            f"-rw-r--r-- 1 agent agent {r.randrange(10**6):7d} Nov {r.randrange(1, 29):2d} {r.choice(pool)[0]}"
            for _ in range(max(1, n // 60))
        )
    if kind < 0.92:
        return name, "======= test session starts =======\n" + "\n".join(
            f"tests/test_{r.randrange(99)}.py::test_{r.randrange(999)} {r.choice(['PASSED', 'PASSED', 'FAILED'])}"
            for _ in range(max(1, n // 55))
        )
    return name, "Traceback (most recent call last):\n" + source[:n]


def trajectory(i: int, n: int, seed: int, harnesses: list[Any], pool: list[Any], docs: list[str]) -> tuple[int, bytes]:
    """Return the harness index and the JSON line of trajectory i."""
    r = random.Random(seed * 1_000_003 + i)
    h = r.choices(range(6), SHARES)[0]
    prompt, tools = harnesses[h]
    steps: list[Any] = [
        {"step_id": 1, "source": "system", "message": prompt},
        {"step_id": 2, "source": "user", "message": " ".join(r.choice(docs) for _ in range(3))},
    ]
    for k in range(max(4, int(r.gauss(20, 6)))):
        name, text = observation(r, pool)
        text = text[: 4000 + h]
        tool = r.choice(["bash", "bash", "read_file", "edit", "search"])
        call = f"call_{r.getrandbits(64):016x}"
        arguments = {
            "bash": {"command": f"sed -n '{k * 10},{k * 10 + 40}p' {name}", "timeout": "60"},
            "read_file": {"path": name, "offset": str(r.randrange(900)), "limit": "80"},
            "edit": {"path": name, "old": text[:120], "new": text[:90] + " # changed"},
            "search": {"query": text[:30], "glob": "*.py"},
        }[tool]
        steps.append(
            {
                "step_id": k + 3,
                "source": "agent",
                "timestamp": f"2026-11-{r.randrange(1, 29):02d}T10:{r.randrange(60):02d}:00Z",
                "message": r.choice(docs)[:300],
                "reasoning_content": r.choice(docs),
                "tool_calls": [{"tool_call_id": call, "function_name": tool, "arguments": arguments}],
                "observation": {"results": [{"source_call_id": call, "content": text}]},
                "metrics": {
                    "prompt_tokens": r.randrange(2000, 30000),
                    "completion_tokens": r.randrange(20, 800),
                    "cost_usd": round(r.random() / 50, 6),
                },
            }
        )
    ok = r.random() < 0.42
    model = r.choice(MODELS)
    document = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": f"{r.getrandbits(128):032x}",
        "agent": {"name": "bench-agent", "version": "1", "model_name": model, "tool_definitions": tools},
        "steps": steps,
        "extra": {
            "tracemark": {
                "run": {
                    "task": f"task-{r.randrange(max(1, n // 8)):05d}",
                    "attempt": r.randrange(8),
                    "model": dict(zip(("name", "revision"), model.split("@"), strict=True)),
                },
                "outcome": {"status": "success" if ok else "failure", "reward": 1.0 if ok else 0.0},
            }
        },
    }
    return h, orjson.dumps(document) + b"\n"


def main() -> None:
    """Write harness versions and inbox."""
    n, out = int(sys.argv[1]), Path(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    rng = random.Random(seed)
    pool, docs = texts()
    harnesses = [make_harness(i, out / f"harness_versions/h{i}", docs, rng) for i in range(6)]
    (out / "inbox").mkdir(parents=True, exist_ok=True)
    total = 0
    with ExitStack() as stack:
        files = [stack.enter_context((out / f"inbox/h{i}.jsonl").open("wb")) for i in range(6)]
        for i in range(n):
            h, line = trajectory(i, n, seed, harnesses, pool, docs)
            total += files[h].write(line)
    print(f"{n} trajectories, {total} bytes, {total // max(n, 1)} each", file=sys.stderr)


if __name__ == "__main__":
    main()
