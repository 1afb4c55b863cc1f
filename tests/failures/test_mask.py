"""Masks: one failure reads the same wherever it happens, and two failures do not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.failures.mask import LONGEST_MASKED, mask


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("total is 4,875.50, but paid 1625", "total is <n>, but paid <n>"),
        ("ModuleNotFoundError: No module named 'erfa'", "ModuleNotFoundError: No module named <text>"),
        ('key "a b" and `c d` are gone', "key <text> and <text> are gone"),
        ("can't open it, won't try", "can't open it, won't try"),
        ("bash: /a/b.sh: No such file or directory", "bash: <path>: No such file or directory"),
        ("src/a.c:27:1: error: no type", "<path>:<n>:<n>: error: no type"),
        ("open C:\\Users\\a.txt failed", "open <path> failed"),
        ("a.py is missing", "<path> is missing"),
        ("run 550e8400-e29b-41d4-a716-446655440000 died", "run <uuid> died"),
        ("commit 3f2a9c1d77 at 0xDEADBEEF", "commit <hex> at <hex>"),
        ("at 2026-08-01T10:03:30.123Z and 10:03:30, on 2026-08-01", "at <time> and <time>, on <time>"),
        ("GET https://a.b/c?d=1 failed", "GET <url> failed"),
        ("flight HAT229, card gift_card_8190333, booking OBUT9V", "flight <id>, card gift_card_<n>, booking <id>"),
        ("seat E12", "seat E<n>"),
        ("\x1b[31mfatal:\x1b[0m   no\tway", "fatal: no way"),
        ("['docker', 'exec', '-w'] timed out after 30 s", "[<text>…] timed out after <n> s"),
        ("defaced facade", "defaced facade"),
        ("price is -5, paid +3", "price is <n>, paid <n>"),
        ("range 3-5, x-5, (-5) [-5] =-5", "range <n>-<n>, x-<n>, (<n>) [<n>] =<n>"),
        ("loss 1e-05 or 2.5E+10 or .5 is not 0.5", "loss <n> or <n> or <n> is not <n>"),
        ("user sara.doe+1@mail.example.com not found", "user <mail> not found"),
        ("git@example.com:a/b and pkg@1.2.3", "<mail>:<path> and pkg@<n>"),
        ("/srv/a@b.com/x and a@b.com/x", "<path> and <path>"),
        ("fe80::1ff:fe23:4567:890a%eth0 unreachable", "<ip> unreachable"),
        ("2001:db8::1, ::1 and 2001:0db8:85a3:0000:0000:8a2e:0370:7334", "<ip>… and <ip>"),
        ("std::vector, a::b and dead::beef", "std::vector, a::b and dead::beef"),
        ("card 00:1a:2b:3c:4d:5e at 10:03:30", "card <hex> at <time>"),
        ("session a8Kd93jZ, call_Qz81mmP0 expired", "session <id>, call_<id> expired"),
        ("Utf8Error in Float64Index by sha256, python3", "Utf<n>Error in Float<n>Index by sha<n>, python<n>"),
        ("v1beta1 of OAuth2Client", "v<n>beta<n> of OAuth<n>Client"),
        ("commit deadbeef", "commit <hex>"),
        ("commit 1a2b3c4", "commit <hex>"),
        ("commit 1234567", "commit <hex>"),
        ("commit defaced", "commit <hex>"),
        ("user sara_doe_496, table users.sql", "user sara_doe_<n>, table users.sql"),
        ("", ""),
    ],
)
def test_what_differs_from_run_to_run_is_masked(line: str, masked: str) -> None:
    assert mask(line) == masked


def test_two_errors_stay_two() -> None:
    assert mask("Error: not enough seats on flight HAT229") != mask("Error: gift card balance is not enough")


LINES = (
    "Error: not enough seats, {number} left of {number}",
    "{path}:{number}: error: no type {quoted}",
    "run {uuid} of {path} died at {time}",
    "no module named {quoted} in {path}",
    "commit {hexadecimal} is unknown since {time}",
    "session {session} of {mail} expired",
    "{address} is unreachable",
)
FACTS = st.fixed_dictionaries(
    {
        "number": st.integers(-(10**12), 10**12).map(str)
        | st.decimals(-999, 999, places=2).map(str)
        | st.floats(allow_nan=False, allow_infinity=False).map(str),
        "path": st.lists(st.text("abcXYZ019._-", min_size=1, max_size=6), min_size=1, max_size=4).map(
            lambda names: "/" + "/".join(names) + "/z"
        ),
        "quoted": st.text("ab 01/.", max_size=8).map(lambda text: f"'{text}'"),
        "uuid": st.uuids().map(str),
        "hexadecimal": st.integers(0, 2**40).map(lambda number: f"{number:010x}"),
        "session": st.from_regex(r"[a-z][0-9][A-Z][0-9][a-zA-Z0-9]{4}", fullmatch=True),
        "mail": st.from_regex(r"[a-z][a-z0-9.+-]{0,9}@[a-z]{1,9}(\.[a-z]{2,3}){1,3}", fullmatch=True),
        "address": st.ip_addresses(v=6).map(str).filter(lambda text: re.search("[0-9]", text) is not None),
        "time": st.datetimes().map(lambda time: time.replace(microsecond=0).isoformat() + "Z"),
    }
)


@pytest.mark.parametrize("form", LINES)
@given(one=FACTS, other=FACTS)
def test_one_failure_with_other_facts_reads_the_same(form: str, one: dict[str, str], other: dict[str, str]) -> None:
    assert mask(form.format_map(one)) == mask(form.format_map(other))


def test_a_long_line_is_cut() -> None:
    assert mask("ab " * 10_000) == ("ab " * 10_000)[:400]


@given(st.text(max_size=300))
def test_no_digit_is_left_and_the_result_is_one_short_line(line: str) -> None:
    masked = mask(line)
    assert re.search(r"\d", masked) is None
    assert len(masked) <= LONGEST_MASKED
    assert masked == " ".join(masked.split()) or len(masked) == LONGEST_MASKED
