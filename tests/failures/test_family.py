"""Command families: which calls are attempts at the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.error_line import error_in
from tracemark.failures.family import attempt_of, is_misnamed, script_of
from tracemark.failures.program import program_of


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
        ("python -u a.py --x", "python a.py --x"),
        ("python -u a.py -v x.txt", "python a.py"),
        ("cat > a.py <<'E'\nrm -rf x\nE\npython a.py", "python a.py"),
        ("cat > a.py <<E\nnever closed\nmake", "cat"),
        ("# a remark; make\nls", "ls"),
        ("grep 'a && make' b", "grep"),
        ("edit 1:2\nimport os\nend_of_edit", "edit"),
        ("'", "'"),
        (" \n", "(nothing)"),
    ],
)
def test_the_program_of_a_command_line(command: str, program: str) -> None:
    assert program_of(command) == program


APART = [
    # options with a value are not the subcommand
    ("git -C repo push", "git -C repo status"),
    ("git -c core.pager=cat push", "git -c core.pager=cat log"),
    ("npm --prefix web run build", "npm --prefix web install"),
    ("npm --prefix web run build", "npm --prefix web run test"),
    ("npm --silent run build", "npm --silent run test"),
    ("pnpm -C web build", "pnpm -C web lint"),
    ("yarn workspace web build", "yarn workspace web lint"),
    ("kubectl -n prod apply -f a.yaml", "kubectl -n prod get pods"),
    ("kubectl --unlisted prod apply", "kubectl --unlisted prod delete"),
    ("make -C build test", "make -C build clean"),
    ("make clean all", "make clean docs"),
    ("apt-get -o X=y install foo", "apt-get -o X=y update"),
    ("cargo +nightly build", "cargo +nightly fmt"),
    # what starts another program
    ("conda run -n env pytest", "conda run -n env ls"),
    ("poetry -C x run pytest", "poetry -C x run ls"),
    ("uv run --with x pytest", "uv run --with x ls"),
    ("bundle exec rspec", "bundle exec ls"),
    ("npx tsc", "npx eslint"),
    ("npx playwright install", "npx eslint"),
    ("docker exec c make", "docker exec c ls"),
    ("docker exec -it a make", "docker exec -it b make"),
    ("docker run --rm -v /a:/b img make", "docker run --rm -v /a:/b img ls"),
    ("kubectl exec pod -- make", "kubectl exec pod -- ls"),
    ("ssh -p 22 h make", "ssh -p 22 h ls"),
    ("ssh h 'cd a && make'", "ssh h 'cd a && ls'"),
    ("sudo -u postgres createdb x", "sudo -u postgres psql -l"),
    ("su - postgres -c 'createdb x'", "su - postgres -c 'psql'"),
    ("timeout -s KILL 60 pytest", "timeout -s KILL 60 ls"),
    ("timeout --kill-after=5 60 pytest", "timeout --kill-after=5 60 ls"),
    ("env -u A make", "env -u A ls"),
    ("nice -n 5 make", "nice -n 5 ls"),
    ("nohup make > log 2>&1 &", "nohup ls > log 2>&1 &"),
    ("time -f A make", "time -f A ls"),
    ("xargs make < x", "xargs ls < x"),
    ("xargs -n 1 make < x", "xargs -n 1 ls < x"),
    ("watch -n 2 make", "watch -n 2 ls"),
    ("stdbuf -o L make", "stdbuf -o L ls"),
    # the shell's own words
    ("for d in a b; do make -C $d; done", "for i in 1 2; do ls; done"),
    ("while true; do curl x; done", "for i in 1; do ls; done"),
    ("while read l; do make $l; done < f", "for x in 1; do echo; done"),
    ("if [ -f Makefile ]; then make; fi", "if true; then ls; fi"),
    ("if ! make; then exit 1; fi", "if ! ls; then exit 1; fi"),
    ("{ make; }", "{ ls; }"),
    ("(cd a; make)", "(cd a; ls)"),
    ("! make", "! ls x"),
    ("case x in a) make;; esac", "case y in b) ls;; esac"),
    ("case x in a) make;; b) true;; esac", "case x in a) ls;; b) true;; esac"),
    ("f() { make; }; f", "f() { ls; }; f"),
    ("function f { make; }; f", "function f { ls; }; f"),
    ("[[ -f a && -f b ]] && make", "[[ -f a && -f b ]] && ls"),
    ("$(which python) a.py", "$(which python) b.py"),
    ("`which python` a.py", "`which python` b.py"),
    ("$PYTHON a.py", "$PYTHON b.py"),
    ("diff <(make a) <(make b); pytest", "diff <(make a) <(make b); ls"),
    # interpreters and shells
    ("python -m pip install x", "python -m pip list"),
    ("python -m pip install x", "python -m pip --version"),
    ("python3 -W ignore a.py", "python3 -W ignore b.py"),
    ("python -X dev a.py", "python -X dev b.py"),
    ("python --unlisted x a.py", "python --unlisted x b.py"),
    ("python manage.py migrate", "python manage.py check"),
    ("python cli.py --config x.yml migrate", "python cli.py --config x.yml check"),
    ("node --require x a.js", "node --require x b.js"),
    ("java -cp a:b Main", "java -cp a:b Other"),
    ("bash -lc 'make'", "bash -lc 'ls'"),
    ("sudo bash -c 'make'", "sudo bash -c 'ls'"),
    ('bash -c "cd a && make"', 'bash -c "cd a && ls"'),
    ("bash build.sh all", "bash build.sh clean"),
    ("eval 'make'", "eval 'ls'"),
    # programs with subcommands
    ("docker compose up -d", "docker compose ps"),
    ("docker compose -f a.yml up", "docker compose -f a.yml ps"),
    ("docker-compose up", "docker-compose ps"),
    ("uv pip install x", "uv pip list"),
    ("gh pr create", "gh pr list"),
    ("go mod download", "go mod edit x"),
    ("mvn -q test", "mvn -q clean"),
    ("./gradlew test", "./gradlew clean"),
    ("dotnet test", "dotnet restore"),
    ("terraform apply", "terraform fmt"),
    ("aws s3 cp", "aws sts get"),
    ("apk add x", "apk info"),
    ("dnf install x", "dnf list"),
    ("yum install x", "yum list"),
    ("service nginx restart", "service nginx status"),
    ("systemctl restart nginx", "systemctl status nginx"),
    ("pip3.11 install x", "pip3.11 list"),
    # programs that nobody listed
    ("anything new", "anything old"),
    ("./manage deploy", "./manage status"),
    ("tox -e py", "tox -l"),
    ("tox -e py", "tox -e lint"),
    ("pacman -S x", "pacman -Q"),
    ("anything --env prod up", "anything --env prod down"),
    # asking a program about itself
    ("make", "make --version"),
    ("pytest", "pytest --help"),
    ("python -m pytest", "python -m pytest --version"),
    ("gcc a.c", "gcc -V"),
]


@pytest.mark.parametrize(("one", "other"), APART)
def test_two_things_are_two_programs(one: str, other: str) -> None:
    assert program_of(one) != program_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("git push", "git -C repo --no-pager push origin main"),
        ("npm run build", "npm --silent run build -- --x"),
        ("make test", "make -j 4 -C build CC=gcc test 2>&1 | tail"),
        ("make", "sudo -u root make"),
        ("make", "bash -lc 'cd a && make'"),
        ("make", "for d in a b; do make -C $d; done"),
        ("make", "timeout 60 make || exit 1"),
        ("make", "make > log 2>&1; echo EXIT=$?"),
        ("python -m pytest", "A=1 python -u -m pytest tests/test_a.py -x"),
        ("pytest a.py", "pytest b.py -q"),
        ("kubectl apply", "kubectl -n prod apply -f a.yaml"),
        ("apt-get install", "DEBIAN_FRONTEND=noninteractive apt-get -y -qq install x"),
        ("python a.py", "python3 a.py".replace("3", "")),
        ("docker compose up", "docker compose -f a.yml up -d"),
        ("cat a", "cat b"),
    ],
)
def test_a_second_try_is_the_same_program(one: str, other: str) -> None:
    assert program_of(one) == program_of(other)


@given(st.text(alphabet="ab'\"\\|&;<>()\n #$=-", max_size=80))
def test_any_command_line_has_a_program(command: str) -> None:
    assert program_of(command)


@pytest.mark.parametrize(
    ("tool", "arguments", "script"),
    [
        ("runCommand", {"command": "ls"}, "ls"),
        ("executeCommand", {"command": "ls"}, "ls"),
        ("BashTool", {"command": "ls"}, "ls"),
        ("RunShell", {"command": "ls"}, "ls"),
        ("runTerminalCommand", {"command": "ls"}, "ls"),
        ("execute_commands", {"commands": ["ls", "-a b"]}, "ls '-a b'"),
        ("bash", {"bash_command": "ls"}, "ls"),
        ("run", {"command": "npm test"}, "npm test"),
        ("run_in_sandbox", {"cmd": "npm test"}, "npm test"),
        ("sandbox", {"bash_command": "npm test"}, "npm test"),
        ("process", {"script": "npm test"}, "npm test"),
        ("run", {"command": "start"}, None),
        ("run", {"text": "npm test"}, None),
        ("publish", {"path": "bash", "command": 1}, None),
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
    return attempt_of(tool, arguments, script_of(tool, arguments)).family


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
