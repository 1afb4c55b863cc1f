"""Conditions are data, read strictly: what a file says wrongly is named with its line and key."""

from __future__ import annotations

import pytest

from tracemark.errors import ParamsError
from tracemark.failures.conditions import Conditions, Destination, Question, Side, conditions, shipped

PLAIN = """version = 1

[[condition]]
name = "mine"
order = 8.5
says = "a guard stopped it"
side = "tool"
confidence = 0.9
destination = "harness"
test = "failure-matches"
patterns = ['guard']
"""


def names(found: Conditions) -> list[str]:
    return [condition.name for condition in found.ordered]


class TestShipped:
    def test_the_twelve_of_the_published_table(self) -> None:
        table = [
            (condition.order, condition.side.value, condition.confidence, condition.destination.value)
            for condition in sorted(shipped().ordered, key=lambda condition: condition.order)
        ]
        assert table == [
            (1, "environment", 0.97, "environment-repair"),
            (2, "grader", 0.90, "benchmark-repair"),
            (3, "ambiguous", 0.00, "quarantine"),
            (4, "model", 0.80, "training"),
            (5, "model", 0.80, "recovery-training"),
            (6, "ambiguous", 0.45, "quarantine"),
            (7, "model", 0.60, "model-training"),
            (8, "environment", 0.85, "environment-repair"),
            (9, "tool", 0.85, "harness"),
            (10, "tool", 0.70, "harness"),
            (11, "model", 0.80, "model-training"),
            (12, "model", 0.65, "model-training"),
        ]

    def test_every_side_destination_and_test_is_used_by_one(self) -> None:
        assert {condition.side for condition in shipped().ordered} == set(Side)
        assert {condition.destination for condition in shipped().ordered} == set(Destination)
        assert {condition.test for condition in shipped().ordered} == set(Question)

    def test_only_a_success_is_trained_on_and_no_success_is_a_failure(self) -> None:
        for condition in shipped().ordered:
            trains = condition.destination in (Destination.TRAINING, Destination.RECOVERY_TRAINING)
            assert not trains or condition.statuses == {"success"}
            assert trains or condition.confidence < 0.6 or "success" not in condition.statuses

    def test_whether_environment_or_grader_is_at_fault_is_asked_first(self) -> None:
        assert [condition.order for condition in shipped().ordered] == [1, 2, 8, 3, 4, 5, 6, 7, 9, 10, 11, 12]

    def test_each_says_what_it_means(self) -> None:
        assert all(condition.says for condition in shipped().ordered)


class TestOwn:
    def test_stand_among_the_shipped_ones_by_their_order(self) -> None:
        found = names(conditions(PLAIN))
        assert found.index("mine") == found.index("stopped-early") + 1
        assert found.index("mine") == found.index("action-rejected") - 1

    @pytest.mark.parametrize("side", ["environment", "grader"])
    def test_of_environment_and_grader_stand_in_front_of_all_others(self, side: str) -> None:
        text = PLAIN.replace('"tool"', f'"{side}"').replace('"harness"', '"quarantine"').replace("8.5", "99")
        assert names(conditions(text))[:4] == ["no-model-input", "grader-exception", "environment-fault", "mine"]

    def test_of_an_equal_order_stand_behind_them(self) -> None:
        assert names(conditions(PLAIN.replace("8.5", "8"))) == names(conditions(PLAIN))

    def test_change_the_digest_and_comments_do_not(self) -> None:
        assert conditions(PLAIN).digest == conditions("# a remark\n" + PLAIN).digest
        assert conditions(PLAIN).digest != shipped().digest
        assert conditions("version = 1\n").digest == shipped().digest

    @pytest.mark.parametrize(
        ("changed", "into", "line", "key"),
        [
            ('name = "mine"', 'name = "Mine!"', 4, "name"),
            ('name = "mine"', 'name = "unmatched"', 4, "name"),
            ('name = "mine"', 'name = "clean-success"', 4, "name"),
            ("order = 8.5", 'order = "8"', 5, "order"),
            ("order = 8.5", "order = true", 5, "order"),
            ("order = 8.5", "order = nan", 5, "order"),
            ("order = 8.5\n", "", 3, "order"),
            ('side = "tool"', 'side = "nobody"', 7, "side"),
            ('side = "tool"', 'side = ["tool"]', 7, "side"),
            ("confidence = 0.9", "confidence = 1.5", 8, "confidence"),
            ("confidence = 0.9", "confidence = nan", 8, "confidence"),
            ('destination = "harness"', 'destination = "sft"', 9, "destination"),
            ('test = "failure-matches"', 'test = "guess"', 10, "test"),
            ('test = "failure-matches"', 'test = "failure-hidden"', 11, "patterns"),
            ("patterns = ['guard']", "patterns = ['(']", 11, "patterns"),
            ("patterns = ['guard']", "patterns = ['[[a]b']", 11, "patterns"),
            ("patterns = ['guard']", "patterns = 'guard'", 11, "patterns"),
            ("patterns = ['guard']", "patterns = []", 11, "patterns"),
            ("patterns = ['guard']\n", "", 3, "patterns"),
            ("patterns = ['guard']", "patterns = ['guard']\nstatuses = ['lost']", 12, "statuses"),
            ("patterns = ['guard']", "patterns = ['guard']\nstatuses = [1]", 12, "statuses"),
            ("patterns = ['guard']", "patterns = ['guard']\nrepeats = 3", 12, "repeats"),
            ("patterns = ['guard']", "patterns = ['guard']\ncolour = 1", 12, "colour"),
        ],
    )
    def test_what_is_wrong_is_named_with_line_and_key(self, changed: str, into: str, line: int, key: str) -> None:
        with pytest.raises(ParamsError, match=key) as refused:
            conditions(PLAIN.replace(changed, into), "rules/own.toml")
        assert refused.value.where == f"rules/own.toml:{line}"
        assert "condition 1" in refused.value.message

    @pytest.mark.parametrize("side", ["environment", "grader"])
    @pytest.mark.parametrize(
        ("destination", "goes"),
        [
            ("harness", False),
            ("model-training", False),
            ("training", False),
            ("recovery-training", False),
            ("environment-repair", True),
            ("benchmark-repair", True),
            ("quarantine", True),
        ],
    )
    def test_a_fault_of_environment_or_grader_goes_nowhere_near_the_harness(
        self, side: str, destination: str, goes: bool
    ) -> None:
        text = PLAIN.replace('"tool"', f'"{side}"').replace('"harness"', f'"{destination}"')
        if goes:
            assert names(conditions(text)).count("mine") == 1
            return
        with pytest.raises(ParamsError, match=f"destination: a fault of the {side} goes to") as refused:
            conditions(text, "own.toml")
        assert refused.value.where == "own.toml:9"

    @pytest.mark.parametrize("test", ["no-input", "grader-exception"])
    def test_neither_does_what_asks_whether_they_broke(self, test: str) -> None:
        text = PLAIN.replace("failure-matches", test).replace("patterns = ['guard']\n", "")
        with pytest.raises(ParamsError, match=f"destination: what the test {test} asks") as refused:
            conditions(text, "own.toml")
        assert refused.value.where == "own.toml:9"
        assert names(conditions(text.replace('"harness"', '"benchmark-repair"'))).count("mine") == 1

    @pytest.mark.parametrize("destination", ["training", "recovery-training"])
    @pytest.mark.parametrize("statuses", ["", "statuses = ['failure']", "statuses = ['success', 'error']"])
    def test_only_a_success_is_trained_on(self, destination: str, statuses: str) -> None:
        text = PLAIN.replace('"harness"', f'"{destination}"') + statuses
        with pytest.raises(ParamsError, match="destination: only a success") as refused:
            conditions(text, "own.toml")
        assert refused.value.where == "own.toml:9"
        alone = PLAIN.replace('"harness"', f'"{destination}"') + "statuses = ['success']"
        assert names(conditions(alone)).count("mine") == 1

    @pytest.mark.parametrize(
        ("terminations", "line"), [("terminations = ['(']", 12), ("terminations = 'x'", 12), ("terminations = [1]", 12)]
    )
    def test_expressions_for_how_a_run_stopped_are_read_as_strictly(self, terminations: str, line: int) -> None:
        with pytest.raises(ParamsError, match="terminations") as refused:
            conditions(PLAIN + terminations, "own.toml")
        assert refused.value.where == f"own.toml:{line}"

    def test_they_are_enough_for_a_condition(self) -> None:
        text = PLAIN.replace("patterns =", "terminations =")
        assert [one.name for one in conditions(text).ordered if one.terminations] == ["environment-fault", "mine"]

    def test_so_are_those_for_what_is_not_this_machine(self) -> None:
        text = PLAIN.replace("patterns =", "remote =")
        assert [one.name for one in conditions(text).ordered if one.remote] == ["environment-fault", "mine"]
        with pytest.raises(ParamsError, match="remote") as refused:
            conditions(PLAIN + "remote = ['(']", "own.toml")
        assert refused.value.where == "own.toml:12"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("version = 1\nx = [,]", "not TOML.*line 2"),
            ("", "version"),
            ("version = 2", "version"),
            ("version = true", "version"),
            ("version = 1\nquarantine = 0.1", "quarantine"),
            ("version = 1\ncondition = 3", "condition"),
            ("version = 1\n[condition]\nname = 'a'", "condition"),
            ("version = 1\na = " + "[" * 100_000, "TOML"),
        ],
    )
    def test_a_file_that_is_none_is_named(self, text: str, words: str) -> None:
        with pytest.raises(ParamsError, match=words) as refused:
            conditions(text, "rules/own.toml")
        assert refused.value.where == "rules/own.toml"

    def test_two_of_one_name_are_refused(self) -> None:
        twice = PLAIN + PLAIN.partition("\n\n")[2]
        with pytest.raises(ParamsError, match="condition 2, name") as refused:
            conditions(twice, "own.toml")
        assert refused.value.where == "own.toml:13"
