"""Command families: which calls are attempts at the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.family import family_of, program_of, script_of


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
