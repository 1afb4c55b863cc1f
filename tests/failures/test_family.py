"""Command families: which calls are attempts at the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.error_line import error_in
from tracemark.failures.family import family_of, is_misnamed, program_of, script_of


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("ls -la", "ls"),
        ("/usr/bin/make test", "make test"),
        ("./test", "./test"),
        ("cd /a && make", "make"),
        ("cd /a; make; echo done", "make"),
        ("cd /a", "cd"),
        ("", "(nothing)"),
        ("make 2>&1 | tail -5", "make"),
        ("cat a | grep b | sort", "cat"),
        ("sudo -E timeout 30 apt-get -y install x", "apt-get install"),
        ("A=1 B='x y' npm run build", "npm run build"),
        ('A="$(date)" B="x;y"\nmake', "make"),
        ("git -C /a push origin main", "git push"),
        ("python -m pytest -q", "python -m pytest"),
        ("python3 -c 'import a; print(1)'", "python3 -c"),
        ("python3 - <<'E'\nprint(1)\nE", "python3 -c"),
        ("python -u a.py --x", "python a.py"),
        ("cat > a.py <<'E'\nrm -rf x\nE\npython a.py", "python a.py"),
        ("cat > a.py <<E\nnever closed\nmake", "cat"),
        ("# a remark; make\nls", "ls"),
        ("grep 'a && make' b", "grep"),
        ("edit 1:2\nimport os\nend_of_edit", "edit"),
        ("'", "(nothing)"),
    ],
)
def test_the_program_of_a_command_line(command: str, program: str) -> None:
    if command == "'":
        assert isinstance(program_of(command), str)
    else:
        assert program_of(command) == program


@given(st.text(alphabet="ab'\"\\|&;<>()\n #$=-", max_size=80))
def test_any_command_line_has_a_program(command: str) -> None:
    assert program_of(command)


@pytest.mark.parametrize(
    ("tool", "arguments", "script"),
    [
        ("bash", {"command": "ls"}, "ls"),
        ("execute_bash", {"command": "ls"}, "ls"),
        ("terminal", {"command": "ls", "security_risk": "LOW"}, "ls"),
        ("shell", {"command": ["bash", "-lc", "ls -a"]}, "ls -a"),
        ("shell", {"command": ["ls", "-a"]}, "ls -a"),
        ("Bash", {"description": "x"}, None),
        ("str_replace_editor", {"command": "view", "path": "a"}, None),
        ("finish", {"message": "x"}, None),
        ("publish_command_list", {"path": "x"}, None),
        (None, {"command": "ls"}, None),
    ],
)
def test_a_command_line_is_what_a_shell_is_given(
    tool: str | None, arguments: dict[str, Any], script: str | None
) -> None:
    assert script_of(tool, arguments) == script


def family(tool: str | None, **arguments: Any) -> str | None:
    return family_of(tool, arguments, script_of(tool, arguments))


class TestTools:
    def test_what_may_change_on_a_second_try_is_no_part_of_it(self) -> None:
        assert family("book", user_id="u", total=1, flights=["a"]) == family(
            "book", user_id="u", total=2, flights=["b"]
        )

    def test_the_object_named_by_the_tools_own_name_comes_first(self) -> None:
        one = family("update_reservation", reservation_id="r", payment_id="a")
        assert one == family("update_reservation", reservation_id="r", payment_id="b")
        assert one != family("update_reservation", reservation_id="s", payment_id="a")

    def test_the_order_of_the_arguments_does_not_matter(self) -> None:
        assert family("move", file_path="a", folder="b") == family("move", folder="b", file_path="a")

    def test_an_operation_is_part_of_it(self) -> None:
        assert family("editor", command="view", path="a") != family("editor", command="create", path="a")

    def test_code_given_in_place_is_not(self) -> None:
        assert family("python", code="1") == family("python", code="2")

    def test_two_tools_are_two_families(self) -> None:
        assert family("a", id="1") != family("b", id="1")

    def test_without_tool_and_command_there_is_none(self) -> None:
        assert family(None, path="a") is None
        assert family("", path="a") is None

    def test_long_values_are_told_apart(self) -> None:
        assert family("read", path="a" * 500) != family("read", path="a" * 499 + "b")


def test_shells_of_two_names_are_two_families() -> None:
    assert family("bash", command="make") != family("terminal", command="make")


class TestMisnamed:
    """Where an error says that what an argument names is not there."""

    @pytest.mark.parametrize(
        ("error", "name"),
        [
            ("Order 4 not found", "4"),
            ("order '4' not found", "4"),
            ("no such order: 4", "4"),
            ("unknown_order: there is no order 4.", "4"),
            ("Error: user sara_doe_496 not found", "sara_doe_496"),
            ("file not found: /workspace/hello.py", "/workspace/hello.py"),
            ("file not found: /workspace/hello.py", "hello.py"),
            ("Invalid id `W-1`: it has to be one of the list", "W-1"),
            ("seat 4 is taken. Order 4 not found", "4"),
        ],
    )
    def test_it_quotes_the_name_and_says_so(self, error: str, name: str) -> None:
        assert is_misnamed(error, "get_order", {"order_id": name}, None)

    @pytest.mark.parametrize(
        ("error", "name"),
        [
            ("404 not found", "4"),
            ("HTTP 404: not found", "4"),
            ("file not found: data4.txt", "4"),
            ("file not found: 4.txt", "4"),
            ("order 14 not found", "4"),
            ("order 4-1 not found", "4"),
            ("order A.4 not found", "4"),
            ("order not found", ""),
            ("order not found", " "),
            ("Order 4 was sent. The address of the second parcel was not found", "4"),
            ("Order 4 has two parcels in the warehouse of the north and the address of one is not found", "4"),
            ("Order 4 is closed", "4"),
        ],
    )
    def test_part_of_another_word_or_far_away_is_no_quotation(self, error: str, name: str) -> None:
        assert not is_misnamed(error, "get_order", {"order_id": name}, None)

    def test_a_program_names_what_it_likes(self) -> None:
        assert not is_misnamed("a not found", "bash", {"path": "a"}, "cat a")

    @pytest.mark.parametrize(
        "text", ["There is no order W1 here", "No order with id W1", "W1 is not a valid id, nor registered: not valid"]
    )
    def test_alone_it_is_an_error_where_an_answer_begins_with_it(self, text: str) -> None:
        assert error_in(text, None, None, "get_order", {"order_id": "W1"}).error == text

    @pytest.mark.parametrize(
        "text",
        [
            "Paid on Monday, sent on Tuesday, and for order W1 there is no invoice yet",
            "Status: sent. There is no claim for order W1",
            "sent\nThere is no claim for order W1",
            "There is no 4-star room, page 404 has more",
        ],
    )
    def test_further_on_it_is_what_a_record_says(self, text: str) -> None:
        for name in ("W1", "4"):
            assert error_in(text, None, None, "get_order", {"order_id": name}).error is None

    @given(st.text(max_size=60), st.text(max_size=5))
    def test_any_text_is_read(self, error: str, name: str) -> None:
        for first in (False, True):
            assert is_misnamed(error, "get_order", {"order_id": name}, None, first=first) in (False, True)

    def test_a_long_text_of_names_takes_no_longer_than_its_length(self) -> None:
        assert not is_misnamed("x not found " * 1_000 + "4" * 5_000, "get_order", {"order_id": "44"}, None)
