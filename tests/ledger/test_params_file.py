"""params.yaml: read strictly, written so that one value changes and no other character."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.errors import ParamsError
from tracemark.ledger import params_file
from tracemark.ledger.params import (
    Accepted,
    CandidateParams,
    Caps,
    FailureParams,
    GateParams,
    Params,
    PlanParams,
    Policy,
)

A = "tm1:" + "a" * 64
B = "tm1:" + "b" * 64


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "params.yaml"


def read(file: Path, text: str) -> Params:
    file.write_text(text)
    return params_file.read_params(file)


def test_a_missing_file_an_empty_file_and_an_empty_section_have_the_defaults(file: Path) -> None:
    assert params_file.read_params(file) == Params()
    assert read(file, "") == Params()
    assert read(file, "# nothing yet\nexport:\ningest: {}\n") == Params()
    assert Params().export.sft == Caps(per_task=1, total=100, minimum=20, tool_calls=(2, 60))
    assert Params().export.evidence is Policy.UNIQUE


def test_every_key_is_read(file: Path) -> None:
    given = read(
        file,
        f"accepted: {{harness: {A}, model: qwen}}\n"
        "ingest: {success_reward: 0.5, max_record: 1000, max_expanded: 2000, inbox: complete}\n"
        "evaluation: {tasks: [t-1, '2']}\n"
        "export: {evidence: recorded, models: [a, b@1],\n"
        "  sft: {per_task: 2, total: 5, minimum: 0, tool_calls: [0, 9]}}\n"
        "gates: {policy: cotrace, infrastructure_errors: 0.1, keep: [desk/t-1], pass_all_not_lower: true,\n"
        "  cost_not_above: true, fresh: true, candidates: {harness: [better], model: [qwen@2]}}\n"
        "failures: {conditions: failures/own.toml}\n"
        "plan: {attempts: 2, quotas: {desk/refund: 0.5}, runs: 9}\n",
    )
    assert given.accepted == Accepted(A, "qwen")
    assert (given.ingest.success_reward, given.ingest.max_record, given.ingest.inbox) == (0.5, 1000, "complete")
    assert given.evaluation == {"t-1", "2"}
    assert given.export.models == ("a", "b@1")
    assert given.export.sft == Caps(2, 5, 0, (0, 9))
    candidates = CandidateParams(("better",), ("qwen@2",))
    assert given.gates == GateParams("cotrace", 0.1, ("desk/t-1",), True, True, True, candidates)
    assert given.failures == FailureParams("failures/own.toml")
    assert given.plan == PlanParams(2, {"desk/refund": 0.5}, 9)


def test_attempts_of_an_evaluation_stand_beside_its_tasks(file: Path) -> None:
    assert read(file, "evaluation: {tasks: [t-1]}\n").evaluation_attempts == 4
    given = read(file, "evaluation: {tasks: [t-1], attempts: 20}\n")
    assert (given.evaluation, given.evaluation_attempts) == ({"t-1"}, 20)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("evaluation:\n  attempts: 0\n", "evaluation.attempts: expected a whole number from 1, not 0", "default is 4"),
        ("gates:\n  policy: strict\n", "expected one of significant, cotrace, not 'strict'", "significant"),
        ("gates:\n  infrastructure_errors: 2\n", "expected a share, a number from 0 to 1, not 2", "default is 0.0"),
        ("gates:\n  fresh: 1\n", "gates.fresh: expected true or false, not 1", "default is false"),
        ("gates:\n  keep: t-1\n", "gates.keep: expected a list of texts, not 't-1'", "default is []"),
        ("gates:\n  candidates: {model: [1]}\n", "gates.candidates.model: expected a text", "default is []"),
        ("failures:\n  conditions: /etc/x\n", "expected a path inside the corpus, or null", "default is null"),
        ("failures:\n  conditions: ../x\n", "expected a path inside the corpus, or null", "default is null"),
        ("plan:\n  quotas: {a: 0.6, b: 0.6}\n", "expected shares that are at most 1 together", "default is {}"),
        ("plan:\n  quotas: [a]\n", "expected a mapping of classes to shares", "default is {}"),
        ("plan:\n  runs: 0\n", "plan.runs: expected a whole number from 1, or null for no limit", "default is null"),
        ("accepted:\n  model: 1\n", "accepted.model: expected a text", "tracemark model accept"),
    ],
)
def test_what_gates_failures_and_plans_are_told_is_read_as_strictly(
    file: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises(ParamsError) as caught:
        read(file, text)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)
    assert str(caught.value.where).startswith("params.yaml:")


@pytest.mark.parametrize("off", ["null", ""])
def test_a_limit_of_nothing_is_off(file: Path, off: str) -> None:
    given = read(file, f"export:\n  sft:\n    per_task: {off}\n    total: {off}\n    tool_calls: {off}\n")
    assert given.export.sft == Caps(per_task=None, total=None, tool_calls=None)


@pytest.mark.parametrize("name", ["per_task", "total", "tool_calls"])
def test_a_limit_of_zero_says_how_to_have_none(file: Path, name: str) -> None:
    with pytest.raises(ParamsError, match="null for no limit, not 0"):
        read(file, f"export: {{sft: {{{name}: 0}}}}\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("colour: red\n", 1),
        ("export:\n  evidence: unique\n  modles: []\n", 3),
        ("export:\n  sft:\n    # a comment\n    per_taks: 1\n", 4),
        ("export: {evidence: sure}\n", 1),
        ("export: {evidence: [unique]}\n", 1),
        ("export: {sft: {per_task: -1}}\n", 1),
        ("export: {sft: {per_task: 0}}\n", 1),
        ("export:\n  sft:\n    total: 0\n", 3),
        ("export: {sft: {tool_calls: 0}}\n", 1),
        ("export: {sft: {per_task: true}}\n", 1),
        ("export: {sft: {total: '5'}}\n", 1),
        ("export: {sft: {tool_calls: [9, 2]}}\n", 1),
        ("export: {sft: {tool_calls: 7}}\n", 1),
        ("export: 5\n", 1),
        ("\n\ningest: {max_record: 0}\n", 3),
        ("ingest: {max_record: 99999999999999999999}\n", 1),
        (f"ingest: {{max_record: 0x{'f' * 9999}}}\n", 1),
        ("export:\n  sft: {total: 9223372036854775808}\n", 2),
        (f"ingest: {{success_reward: {'9' * 400}}}\n", 1),
        ("ingest: {success_reward: .nan}\n", 1),
        ("ingest: {inbox: full}\n", 1),
        ("accepted: {harness: desk_a}\n", 1),
        ("evaluation: {tasks: [1]}\n", 1),
        ("evaluation: {tasks: t1}\n", 1),
        ("evaluation: {tasks: {file: ../outside}}\n", 1),
        ("evaluation: {tasks: {file: /etc/passwd}}\n", 1),
        ("evaluation: {tasks: {path: x}}\n", 1),
        ("ingest: {}\ningest: {}\n", 2),
        ("ingest: {\n", 2),
        ("- a\n", 1),
    ],
)
def test_what_is_wrong_is_named_with_its_line(file: Path, text: str, line: int) -> None:
    with pytest.raises(ParamsError) as caught:
        read(file, text)
    assert caught.value.where == f"params.yaml:{line}"
    assert caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "export: {evidence: none}\n",
            "export.evidence: expected one of recorded, unique, claimed, not 'none'",
            "correct it, or take it out: the default is unique",
        ),
        (
            "export: {sft: {minimum: -1}}\n",
            "export.sft.minimum: expected a whole number from 0, not -1",
            "correct it, or take it out: the default is 20",
        ),
        (
            "export: {sft: {tool_calls: 2}}\n",
            "export.sft.tool_calls: expected [FEWEST, MOST], or null for no limit, not 2",
            "correct it, or take it out: the default is [2, 60]",
        ),
        (
            "accepted: {harness: desk_a}\n",
            "accepted.harness: expected a fingerprint (tm1: and 64 hexadecimal digits) or null, not 'desk_a'",
            "tracemark harness accept NAME --reason TEXT writes it",
        ),
        (
            "evaluation: {tasks: none.txt}\n",
            "evaluation.tasks: expected a list of task ids, or {file: PATH}, not 'none.txt'",
            "correct it, or take it out: the default is []",
        ),
        (
            "evaluation: {tasks: {file: none.txt}}\n",
            "evaluation.tasks: none.txt: No such file or directory",
            "put the file there, one id a line, or list the ids in params.yaml: tasks: [ID, …]",
        ),
        ("export: 3\n", "export: expected a mapping, not 3", "below export stand: evidence, models, sft"),
        (
            "- 1\n",
            "the file must hold a mapping",
            "correct it; `tracemark init DIR` writes one with every default, to compare with",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_what_to_write(file: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(ParamsError) as caught:
        read(file, text)
    assert (caught.value.message, caught.value.where, caught.value.hint) == (message, "params.yaml:1", hint)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "{a: " * 5_000,
        f"ingest: {{max_record: {'1' * 5000}}}\n",
        "ingest: {max_record: 2026-99-99}\n",
        'evaluation: {tasks: {file: "a\\0b"}}\n',
        "accepted: {<<: {harness: 5}}\n",
    ],
)
def test_what_no_reader_can_hold_is_an_error_and_no_crash(file: Path, text: str) -> None:
    with pytest.raises(ParamsError):
        read(file, text)


def test_bytes_that_are_no_text_are_an_error(file: Path) -> None:
    file.write_bytes(b"accepted: \xff\n")
    with pytest.raises(ParamsError):
        params_file.read_params(file)


def test_evaluation_tasks_can_stand_in_a_file_one_a_line(file: Path) -> None:
    (file.parent / "eval.txt").write_text("# frozen\nt-1\n\n  t-2  \n")
    given = read(file, "evaluation: {tasks: {file: ./eval.txt}}\n")
    assert (given.evaluation, given.evaluation_file) == ({"t-1", "t-2"}, "eval.txt")
    given = read(file, "evaluation: {tasks: [t-1]}\n")
    assert (given.evaluation, given.evaluation_file) == ({"t-1"}, None)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_white_space_belong_to_no_id(file: Path, ends: str) -> None:
    (file.parent / "eval.txt").write_bytes(ends.join(["\ufefft-1", "t-2 \t", "\u00a0t-3", ""]).encode())
    assert read(file, "evaluation: {tasks: {file: eval.txt}}\n").evaluation == {"t-1", "t-2", "t-3"}
    assert read(file, "evaluation: {tasks: [' t-1', 't-2\t']}\n").evaluation == {"t-1", "t-2"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('["t-1", "t-2"]\n', 1),
        ('t-1\n  "t-2",\n', 2),
        ('# frozen\n{"tasks": ["t-1"]}\n', 2),
        ("t-1\n- t-2\n", 2),
        ("t-1\x0ct-2\n", 1),
        ("t-1\n\nt\x00-2\n", 3),
        ("t-1\n\ufefft-2\n", 2),
        ("t-1\u2028t-2\n", 1),
    ],
)
def test_a_line_that_is_no_id_is_refused_with_its_place(file: Path, text: str, line: int) -> None:
    (file.parent / "eval.txt").write_text(text)
    with pytest.raises(ParamsError) as caught:
        read(file, "evaluation: {tasks: {file: eval.txt}}\n")
    assert caught.value.where == f"eval.txt:{line}"


@pytest.mark.parametrize("task", ["t\\0", "t\\e[1m", "a\\nb", " ", "\\ufefft"])
def test_an_id_that_nobody_can_see_is_refused_in_a_list_too(file: Path, task: str) -> None:
    with pytest.raises(ParamsError, match="control characters"):
        read(file, f'evaluation:\n  tasks: ["{task}"]\n')


def test_a_list_takes_an_id_that_looks_like_json(file: Path) -> None:
    assert read(file, "evaluation: {tasks: ['[1]']}\n").evaluation == {"[1]"}


def test_a_missing_file_of_evaluation_tasks_is_an_error_and_no_empty_list(file: Path) -> None:
    with pytest.raises(ParamsError, match=r"eval\.txt"):
        read(file, "evaluation: {tasks: {file: eval.txt}}\n")


def test_a_link_out_of_the_corpus_is_not_followed(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "tasks"
    outside.write_text("t-1\n")
    (file.parent / "eval.txt").symlink_to(outside)
    with pytest.raises(ParamsError, match="outside"):
        read(file, "evaluation: {tasks: {file: eval.txt}}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("accepted: {harness: null, model: m}  # pair\n", f"accepted: {{harness: {A}, model: m}}  # pair\n"),
        ("accepted:\n  harness: null   # why\n  model: ~\n", f"accepted:\n  harness: {A}   # why\n  model: ~\n"),
        ("accepted:\n  harness:   # why\n  model: ~\n", f"accepted:\n  harness: {A}   # why\n  model: ~\n"),
        (f'accepted: {{harness: "{B}"}}\n', f"accepted: {{harness: {A}}}\n"),
        ("accepted:\n  model: m\n", f"accepted:\n  harness: {A}\n  model: m\n"),
        ("accepted: {model: m}\n", f"accepted: {{harness: {A}, model: m}}\n"),
        ("accepted: {}\n", f"accepted: {{harness: {A}}}\n"),
        ("accepted:\nexport: {}\n", f"accepted: {{harness: {A}}}\nexport: {{}}\n"),
        ("export: {}  # é\n", f"export: {{}}  # é\naccepted:\n  harness: {A}\n"),
        ("export: {}", f"export: {{}}\naccepted:\n  harness: {A}\n"),
        ("", f"accepted:\n  harness: {A}\n"),
        ("a: 1\r\naccepted:\r\n  harness: null\r\n", f"a: 1\r\naccepted:\r\n  harness: {A}\r\n"),
        (f"accepted: {{harness: {A}}}\n", f"accepted: {{harness: {A}}}\n"),
    ],
)
def test_setting_the_accepted_harness_changes_that_value_alone(file: Path, before: str, after: str) -> None:
    file.write_bytes(before.encode())
    params_file.set_accepted(file, A)
    assert file.read_bytes().decode() == after


def test_a_link_stays_one_and_what_it_leads_to_is_written(file: Path) -> None:
    kept = file.parent / "config" / "params.yaml"
    kept.parent.mkdir()
    kept.write_text("accepted: {harness: null}  # ours\n")
    file.symlink_to("config/params.yaml")
    params_file.set_accepted(file, A)
    assert file.is_symlink()
    assert kept.read_text() == f"accepted: {{harness: {A}}}  # ours\n"


def test_setting_it_in_a_missing_file_makes_the_file(file: Path) -> None:
    params_file.set_accepted(file, A)
    assert params_file.read_params(file).accepted == Accepted(A, None)


def test_it_can_be_set_back_to_none(file: Path) -> None:
    file.write_text(f"accepted: {{harness: {A}}}\n")
    params_file.set_accepted(file, None)
    assert file.read_text() == "accepted: {harness: null}\n"


def test_a_value_that_cannot_change_alone_is_refused_and_left(file: Path) -> None:
    text = "accepted: {model: &x m, harness: *x}\n"
    file.write_text(text)
    with pytest.raises(ParamsError) as caught:
        params_file.set_accepted(file, A)
    assert A in str(caught.value.hint)
    assert file.read_text() == text


comments = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=20)


@given(st.permutations(["accepted", "ingest", "export"]), comments, st.sampled_from(["null", A, "~", f"'{B}'"]))
def test_comments_and_order_survive(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], comment: str, old: str
) -> None:
    sections = {
        "accepted": f"accepted:   #{comment}\n    # {comment}\n    harness: {old}  #{comment}\n    model: null\n",
        "ingest": f"#{comment}\ningest: {{max_record: 5}}\n",
        "export": 'export:\n  evidence:   "claimed"\n\n',
    }
    text = "".join(sections[name] for name in order)
    file = tmp_path_factory.mktemp("params") / "params.yaml"
    file.write_bytes(text.encode())
    params_file.set_accepted(file, A)
    assert file.read_bytes().decode() == text.replace(f"harness: {old} ", f"harness: {A} ")


def test_what_is_no_file_is_named_and_not_opened(file: Path) -> None:
    file.write_text("evaluation: {tasks: {file: eval.txt}}\n")
    os.mkfifo(file.parent / "eval.txt")
    with pytest.raises(ParamsError, match=r"eval\.txt: it is a pipe"):
        params_file.read_params(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ParamsError, match="a pipe"):
        params_file.read_params(file)


def test_a_file_that_nobody_may_read_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    file.touch()
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(ParamsError, match="Permission denied") as caught:
        params_file.read_params(file)
    assert caught.value.hint == "check its permissions"


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("qwen@2", "qwen@2"),
        ("org/qwen:8b@2026-01", "org/qwen:8b@2026-01"),
        ("yes: no", '"yes: no"'),
        ("true", '"true"'),
        ("8b", '"8b"'),
        ("a b # c", '"a b # c"'),
        ("\u6a21\u578b", '"\\u6a21\\u578b"'),
        ("m-\U0001f680@2", '"m-\\U0001F680@2"'),
        (None, "null"),
    ],
)
def test_setting_the_accepted_model_leaves_the_harness_and_reads_back_as_it_is(
    file: Path, model: str | None, written: str
) -> None:
    file.write_text(f"accepted:  # the pair\n  harness: {A}\n  model: old  # for now\n")
    params_file.set_accepted(file, model, "model")
    assert file.read_text() == f"accepted:  # the pair\n  harness: {A}\n  model: {written}  # for now\n"
    assert params_file.read_params(file).accepted == Accepted(A, model)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_whatever_a_model_is_called_reads_back_as_it_is(model: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "params.yaml"
        file.write_text("accepted:\n  harness: null\n  model: old\n")
        params_file.set_accepted(file, model, "model")
        assert params_file.read_params(file).accepted.model == model


@pytest.mark.parametrize("before", ["", "accepted: {}\n", "accepted:\n", "accepted:\n  harness: null\n"])
def test_the_accepted_model_is_written_where_there_is_none_yet(file: Path, before: str) -> None:
    file.write_text(before)
    params_file.set_accepted(file, "a, b@1", "model")
    assert params_file.read_params(file).accepted == Accepted(None, "a, b@1")


def test_both_halves_are_written_at_once_or_neither(file: Path) -> None:
    file.write_text("accepted: {model: old, harness: null}\n")
    params_file.set_pair(file, {"harness": A, "model": "new@1"})
    assert file.read_text() == f"accepted: {{model: new@1, harness: {A}}}\n"
    file.write_text("ingest: {inbox: &name partial}\naccepted: {harness: null, model: *name}\n")
    before = file.read_text()
    with pytest.raises(ParamsError):
        params_file.set_pair(file, {"harness": A, "model": "new@1"})
    assert file.read_text() == before
