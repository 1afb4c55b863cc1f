"""A label never takes the place of a fingerprint, nor of a word that means something else."""

import pytest

from tracemark.harness import known, loading, names

FULL = "tm1:" + "a" * 64


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (FULL, "begins with tm1:"),
        ("tm1:desk", "begins with tm1:"),
        ("a" * 64, "of 64 hexadecimal digits"),
        ("none", "stands for no harness"),
        ("-", "begins with -"),
        ("--all", "begins with -"),
    ],
)
def test_what_means_something_else_is_no_name(name, reason):
    assert reason in names.reserved(name)


@pytest.mark.parametrize(
    "name", ["desk", "desk-2", "beef", "FACADE", "facade", "20260131", "a" * 63, "a" * 65, "None", "2026-01-31", "tm1"]
)
def test_every_other_name_is_free(name):
    assert names.reserved(name) is None


@pytest.mark.parametrize("name", [FULL, "f" * 64, "none", "-"])
def test_a_label_that_is_reserved_is_a_problem_of_the_manifest_with_its_line(desk, name):
    text = (desk.path / "harness.yaml").read_text()
    desk.write("harness.yaml", text.replace("name: desk", f"name: {name!r}", 1))
    examined = loading.examine(desk.path)
    assert examined.harness is None
    (problem,) = examined.problems
    assert problem.code == "manifest-invalid"
    assert problem.where.startswith("harness.yaml:")
    assert problem.message == f"`name` cannot be {name!r}: it {names.reserved(name)}"


@pytest.mark.parametrize("labelled", [True, False])
def test_a_folder_of_such_a_name_is_no_version_of_the_corpus_whatever_its_label(tmp_path, desk, labelled):
    text = (desk.path / "harness.yaml").read_text()
    if not labelled:
        desk.write("harness.yaml", "".join(line for line in text.splitlines(True) if not line.startswith("name:")))
    desk.path.rename(desk.path.with_name(FULL))
    found, findings = known.known_with_findings(tmp_path, tmp_path / "harness_versions", tmp_path / "traces")
    assert found == []
    assert [(one.code, one.where) for one in findings] == [
        ("manifest-invalid", f"harness_versions/{FULL}/harness.yaml")
    ]


def test_a_folder_elsewhere_may_be_called_so_where_the_manifest_has_a_name(desk):
    path = desk.path.rename(desk.path.with_name("none"))
    assert loading.load(path).name == "desk"
    text = (path / "harness.yaml").read_text()
    (path / "harness.yaml").write_text("".join(line for line in text.splitlines(True) if not line.startswith("name:")))
    (problem,) = loading.examine(path).problems
    assert "`name` is missing, and the name of the folder, 'none', cannot stand in for it" in problem.message


@pytest.mark.parametrize("name", [FULL, "a" * 64, "tm1:aaaaaa", "aaaaaa"])
def test_a_fingerprint_has_beginnings_of_six_digits_and_more(name):
    assert names.begins(FULL, name)
    assert not names.begins("tm1:" + "b" * 64, name)


@pytest.mark.parametrize("name", ["aaaaa", "tm1:", "", "AAAAAA", "a" * 65])
def test_nothing_else_begins_a_fingerprint(name):
    assert not names.begins(FULL, name)
