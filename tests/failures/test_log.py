"""The failure log: the same failures give the same bytes, and no text of a trace is written raw."""

from __future__ import annotations

import json
from typing import Any

from tests.failures.runs import bash, call, line, says
from tracemark.failures import log
from tracemark.failures.cluster import TASKS, Clusters, Incident, incident
from tracemark.failures.conditions import shipped
from tracemark.failures.route import Routing, route

EVIL = "Error: \x1b[2J\u202e\u200b\ud800 `|` <script> \n# not a heading"


def routed(*steps: dict[str, Any]) -> tuple[dict[str, Any], Routing]:
    stored = line(*steps)
    return stored, route(stored, shipped())


def collection(*masked: str) -> Clusters:
    found = Clusters()
    for number, text in enumerate(masked):
        found.ran("tm1:a")
        found.add(Incident(f"{number:064}", "tm1:a", "bash", text, f"d/{number}", "2026-08-01"))
    return found


class TestRows:
    def test_a_row_says_where_the_trace_goes_and_why(self) -> None:
        stored, routing = routed(bash("make", "no", 2), bash("make", "ok", 0), bash("pip install x", "ERROR: no", 1))
        row = log.row("id", stored, "tm1:a", routing, "cluster")
        assert row["failure"] == {"step": 4, "call": "c", "tool": "bash", "text": "ERROR: no"}
        assert [span["step"] for span in row["recovered"]] == [2]
        assert (row["trace"], row["cluster"], row["harness"], row["task"]) == ("id", "cluster", "tm1:a", "t")
        assert (row["condition"], row["side"], row["destination"]) == ("not-recovered", "model", "model-training")

    def test_a_row_stays_short_and_counts_what_it_leaves_out(self) -> None:
        again = (bash(f"make {number}", f"Error: no {number}", 2) for number in range(500))
        stored, routing = routed(*again, bash("make", "ok", 0))
        row = log.row("id", stored, "tm1:a", routing, "cluster")
        assert (len(routing.recovered), row["recovered_calls"]) == (500, 500)
        assert [span["step"] for span in row["recovered"]] == list(range(2, 2 + log.RECOVERED))
        assert len(log.to_json(row)) < 10_000

    def test_json_is_ascii_on_one_line_and_gives_the_text_back(self) -> None:
        written = log.to_json({"text": EVIL})
        assert written.isascii()
        assert written.count(b"\n") == 1
        assert json.loads(written) == {"text": EVIL}
        assert not any(byte < 0x20 for byte in written[:-1])


class TestExamples:
    def test_an_example_has_the_whole_exchange(self) -> None:
        raw = {"ok": False, "code": "unknown_order", "message": "no order 3"}
        step = call("get_order", {"order_id": "3"}, "nothing", extra={"raw_output": raw}) | {"message": "let me look"}
        stored, routing = routed(step)
        found = log.example("id", stored, routing)
        assert found["evidence"] == {"step": 2, "call": "c", "tool": "get_order", "text": "unknown_order: no order 3"}
        assert (found["message"], found["command"], found["observation"]) == (
            "let me look",
            '{"order_id":"3"}',
            "nothing",
        )
        assert json.loads(found["raw_output"]) == raw

    def test_of_several_results_of_a_step_it_is_the_one_that_failed(self) -> None:
        calls = [{"tool_call_id": name, "function_name": "edit", "arguments": {"path": name}} for name in "ab"]
        results = [{"source_call_id": name, "content": text} for name, text in (("b", "Error: no"), ("a", "edited"))]
        stored, routing = routed(says("", tool_calls=calls, observation={"results": results}))
        found = log.example("id", stored, routing)
        assert (found["command"], found["observation"]) == ('{"path":"b"}', "Error: no")

    def test_a_late_answer_is_shown_with_its_own_call_and_its_own_text(self) -> None:
        asked = call("book", {"train": "IC-7"}, name="a") | {"message": "the first train"}
        other = call("seat", {"train": "IC-8"}, "Error: sold out today", name="b") | {"message": "another train"}
        late = {"content": "Error: sold out", "extra": {"original_call_id": "a"}}
        other["observation"]["results"].append(late)
        stored, routing = routed(asked, says("waiting"), other, call("seat", {"train": "IC-8"}, "booked", name="c"))
        found = log.example("id", stored, routing)
        assert found["evidence"] == {"step": 2, "call": "a", "tool": "book", "text": "Error: sold out"}
        assert (found["message"], found["command"]) == ("the first train", '{"train":"IC-7"}')
        assert (found["observation"], found["observed_in"]) == ("Error: sold out", 4)

    def test_of_calls_of_one_name_and_one_error_it_is_the_one_that_failed(self) -> None:
        calls = [{"tool_call_id": "c", "function_name": "edit", "arguments": {"path": name}} for name in "ab"]
        results = [{"source_call_id": "c", "content": f"Error: no\nfile {name}"} for name in "ab"]
        both = says("", tool_calls=calls, observation={"results": results})
        stored, routing = routed(both, call("edit", {"path": "a"}, "edited", name="d"))
        found = log.example("id", stored, routing)
        assert (found["command"], found["observation"]) == ('{"path":"b"}', "Error: no\nfile b")

    def test_an_error_that_only_the_record_tells_is_shown_with_its_own_result(self) -> None:
        calls = [{"tool_call_id": name, "function_name": "edit", "arguments": {"path": name}} for name in "ab"]
        results = [
            {"source_call_id": "a", "content": "fine: no order 3, as asked"},
            {"source_call_id": "b", "content": "", "extra": {"raw_output": {"ok": False, "message": "no order 3"}}},
        ]
        stored, routing = routed(says("", tool_calls=calls, observation={"results": results}))
        found = log.example("id", stored, routing)
        assert (found["command"], found["observation"]) == ('{"path":"b"}', "")
        assert json.loads(found["raw_output"])["message"] == "no order 3"

    def test_a_run_without_an_error_shows_how_it_ended(self) -> None:
        stored, routing = routed(says("I give up"))
        found = log.example("id", stored, routing)
        assert (found["evidence"], found["message"], found["step"]) == (None, "I give up", 2)

    def test_a_long_text_keeps_both_ends_and_says_what_is_left_out(self) -> None:
        stored, routing = routed(bash("make", "Error: no\n" + "x" * 50_000 + "\nthe end", 2))
        text = log.example("id", stored, routing)["observation"]
        assert len(text) < log.LONGEST_TEXT + 100
        assert text.startswith("Error: no\n")
        assert text.endswith("\nthe end")
        assert "characters left out" in text


def test_a_cluster_has_its_counts_and_examples() -> None:
    stored, routing = routed(bash("make", "no", 2))
    found = Clusters()
    found.ran("tm1:a", 4)
    found.add(incident("id", "tm1:a", stored, routing))
    (cluster,) = found
    value = log.cluster_value(cluster, found, [log.example("id", stored, routing)])
    assert value["cluster"] == cluster.id
    assert (value["traces"], value["runs"], value["share"], value["tasks"]) == (1, 4, 0.25, 1)
    assert (value["task_names"], value["representatives"]) == (["d/t"], ["id"])
    assert value["examples"][0]["evidence"]["step"] == 2
    assert json.loads(log.to_json(value)) == value


class TestOverview:
    def test_lists_conditions_and_clusters_the_most_frequent_first(self) -> None:
        text = log.overview("tm1:a", collection("rare", "often", "often"), {("not-recovered", "model-training"): 3}, {})
        assert "3 failed runs in 2 clusters" in text
        assert "| not-recovered | model-training | 3 |" in text
        assert text.index("`often`") < text.index("`rare`")
        assert "| 2 | 66.7% | 2 | `bash` | `often` |" in text

    def test_tells_of_the_failed_runs_that_lie_beside_it(self) -> None:
        text = log.overview("h", collection("a"), {}, {"quarantine.jsonl": 2, "environment.jsonl": 1})
        said = "Beside these there are 1 failed run in `environment.jsonl` and 2 failed runs in `quarantine.jsonl`: no "
        assert said in text
        assert "Beside" not in log.overview("h", collection("a"), {}, {})

    def test_is_the_same_for_the_same_failures(self) -> None:
        assert log.overview("h", collection("a", "b"), {}, {}) == log.overview("h", collection("a", "b"), {}, {})

    def test_nothing_of_a_trace_is_raw(self) -> None:
        text = log.overview(EVIL, collection(EVIL), {}, {})
        assert all(letter == "\n" or letter.isprintable() for letter in text)
        assert not any(line.startswith("# not") for line in text.splitlines())
        table = next(line for line in text.splitlines() if "66.7" in line or line.startswith("| 1 |"))
        assert table.replace("\\|", "").count("|") == 7
        text.encode()

    def test_what_does_not_show_itself_is_an_escape(self) -> None:
        text = log.overview("h", collection("a\u202e\ud800\u3164\ufe01\U000e0101é 中"), {}, {})
        assert r"`a\u202e\ud800\u3164\ufe01\U000e0101é 中`" in text

    def test_a_bar_ends_no_cell_and_is_one_elsewhere(self) -> None:
        found = Clusters()
        found.add(Incident("0", None, "a|b", r"no \| or \\| here", r"d/t|u", None))
        text = log.overview("h", found, {}, {})
        row = next(line for line in text.splitlines() if line.startswith("| 1 |"))
        assert row.count("|") == 7
        assert r"| `a\x7cb` | `no \\x7c or \\\x7c here` |" in row
        assert r"- line: `no \| or \\| here`" in text
        assert "- tasks: `d/t|u`" in text

    def test_shows_the_most_frequent_and_says_where_the_others_are(self) -> None:
        texts = [f"e{number:03}" for number in range(log.SHOWN + 3)]
        found = collection(*texts, *texts[:-3])
        text = log.overview("h", found, {}, {})
        assert "3 further clusters, of at most 1 run each, have files in `clusters/`." in text
        assert all(f"`{one}`" in text for one in texts[:-3])
        assert not any(f"`{one}`" in text for one in texts[-3:])
        assert text.count("\n## ") == log.SHOWN
        assert f"in {len(texts)} clusters" in text

    def test_an_estimate_of_the_tasks_is_said_to_be_one(self) -> None:
        found = Clusters()
        for number in range(TASKS + 200):
            found.add(Incident(str(number), None, None, "e", f"d/{number}", None))
        assert " and about 1" in log.overview("h", found, {}, {})
        assert " and 2 more" in log.overview("h", collection(*["e"] * 7), {}, {})

    def test_no_clusters_is_an_overview_too(self) -> None:
        assert "0 failed runs in 0 clusters" in log.overview("h", Clusters(), {}, {})

    def test_says_how_many_are_left_out(self) -> None:
        found = Clusters(1)
        for number in range(3):
            found.add(Incident(str(number), None, None, f"e{number}", None, None))
        assert "2 runs of further clusters" in log.overview("h", found, {}, {})
