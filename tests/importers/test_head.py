"""The beginning of a file: what is worked out only when asked is what would be found by reading everything."""

from __future__ import annotations

import io
import json
import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark import digest
from tracemark.importers import detect, head
from tracemark.importers.conversation import ANSWERS, SPEAKERS
from tracemark.importers.head import BOM, SIZE, Head, read_head

SPACE = b" \t\r\n"
OTHERS = ("epoch", "history", "info", "responses_create_params", "simulations", "steps", "trajectory")


class Eager(NamedTuple):
    """A head of which everything is parsed, by the plainest rules."""

    data: bytes
    lines: bool
    value: Any


def parse(data: bytes) -> Any:
    """Return what a record of these bytes would hold; None for what is no JSON."""
    try:
        return digest.loads(data).value
    except digest.NotJSONError:
        return None


def eager(data: bytes, *, complete: bool) -> Eager:
    first, newline, rest = data.lstrip(SPACE).partition(b"\n")
    value = parse(first)
    if value is not None and newline and rest.strip(SPACE):
        return Eager(data, True, value)
    if complete and (whole := parse(data)) is not None:
        return Eager(data, False, whole)
    if value is None and first.strip(SPACE) not in (b"{", b"["):
        for line in rest.split(b"\n")[:50]:
            other = parse(line) if line[:1] == b"{" else None
            if other:
                return Eager(data, True, other)
    return Eager(data, False, value)


def first_object(value: Any) -> dict[str, Any]:
    found = value[0] if isinstance(value, list) and value else value
    return found if isinstance(found, dict) else {}


def is_atif(head: Eager) -> bool:
    members = first_object(head.value)
    opening = b"".join(head.data[:60].split()).removeprefix(b"[").startswith(b'{"schema_version":"ATIF-v')
    version = str(members.get("schema_version", "")).upper().startswith("ATIF")
    by_shape = isinstance(members.get("agent"), dict) and isinstance(members.get("steps"), list)
    early = b'"ATIF-v' in head.data[:400] and isinstance(members.get("agent", {}), dict)
    stream = "__header__" in members and "schema_version" in members and "steps" not in members
    return opening or by_shape or early or stream or ("steps" in members and version)


def is_message(value: Any) -> bool:
    role = value.get("role") if isinstance(value, dict) else None
    return isinstance(role, str) and (role in SPEAKERS or role in ANSWERS or "content" in value)


def is_chat(head: Eager) -> bool:
    value = head.value
    if isinstance(value, list) and value and is_message(value[0]):
        return True
    members = first_object(value)
    if any(name in members for name in OTHERS) or (isinstance(value, list) and "role" in members):
        return False
    messages = members.get("messages")
    return isinstance(messages, list) and bool(messages) and is_message(messages[0])


def is_journal(head: Eager) -> bool:
    named = b"tracemark/journal/" in head.data.lstrip(SPACE).partition(b"\n")[0]
    form = head.value.get("format") if isinstance(head.value, dict) else None
    return named and isinstance(form, str) and form.startswith("tracemark/journal/")


MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "system", "bot"])}, optional={"content": st.just("é")}
)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "schema_version": st.sampled_from(["ATIF-v1.8", "atif-v1.2", "2", 3]),
    "agent": st.sampled_from([{}, {"name": "a", "steps": [], "messages": []}, "text"]),
    "steps": st.sampled_from([[], [{"message": '{"messages": [{"role": "user"}]}'}], 3]),
    "messages": st.lists(MESSAGE, max_size=2) | st.just("text"),
    "format": st.sampled_from(["tracemark/journal/1", "tracemark/trace/1"]),
    "__header__": st.just(True),
    "history": st.just([]),
    "tools": st.just([{"schema_version": "ATIF-v1.8", "messages": [], "role": "user"}]),
    "role": st.just("user"),
    "note": st.sampled_from(["x", "tracemark/journal/1", 'a "messages" b', "é\n{", "\ud800", 2**70, math.nan]),
}
RECORD = st.permutations(sorted(MEMBERS)).flatmap(
    lambda names: st.integers(0, 4).flatmap(
        lambda count: st.fixed_dictionaries({name: MEMBERS[name] for name in names[:count]})
    )
)
VALUE = RECORD | st.lists(RECORD, max_size=2) | st.lists(MESSAGE, max_size=2) | st.sampled_from(["text", 1, None])


def written(value: Any, style: str) -> str:
    text = json.dumps(value, indent=2 if "indent" in style else None, ensure_ascii="raw" not in style)
    if "escaped" in style:
        text = text.replace("messages", "m\\u0065ssages").replace("steps", "\\u0073teps").replace("role", "\\u0072ole")
    return text


STYLES = st.sampled_from(["", "indent", "raw", "escaped", "indent escaped"])
DATA = st.lists(
    st.tuples(VALUE, STYLES).map(lambda made: written(*made))
    | st.sampled_from(["", " ", "{", "[", '{"a": 1, "b', "junk"]),
    min_size=1,
    max_size=3,
).flatmap(
    lambda texts: st.sampled_from(["\n", "\r\n", "\n\n "]).map(
        lambda gap: gap.join(texts).encode("utf-8", "surrogatepass")
    )
)


@given(DATA, st.booleans())
def test_lines_and_value_are_those_of_a_file_that_is_parsed_at_once(data: bytes, complete: bool) -> None:
    head, plain = Head(data, complete), eager(data, complete=complete)
    assert (head.lines, head.value) == (plain.lines, plain.value)
    assert list(Head(data, complete).members) == list(first_object(plain.value)) or plain.value is None


@given(DATA)
def test_a_format_recognised_by_bytes_is_the_one_that_parsing_gives(data: bytes) -> None:
    plain = eager(data, complete=True)
    found = detect.detect(Head(data, True))
    names = found.tie or (() if found.importer is None else (found.importer.name,))
    if plain.value is None:
        # nothing that ends: what it begins with is judged, which no parsing tells
        assert all(isinstance(name, str) for name in names)
    elif is_journal(plain) and is_atif(plain):
        assert set(names) <= {"journal", "atif"}
        assert names
    else:
        fits = [("journal", is_journal(plain)), ("atif", is_atif(plain)), ("openai-chat", is_chat(plain))]
        assert list(names)[:1] == [name for name, does in fits if does][:1]


@given(DATA)
def test_an_importer_that_is_not_asked_could_not_have_been_surer(data: bytes) -> None:
    for name in detect.IMPORTERS.names():
        asked = detect.importer(name)
        assert 0 <= asked.recognise(Head(data, True)) <= asked.surest


@given(DATA, st.integers(0, 400))
def test_a_head_is_the_same_however_it_was_read(data: bytes, begun: int) -> None:
    data += b" " * begun
    whole = read_head(io.BytesIO(BOM + data), 10_000)
    stream = io.BytesIO(data)
    first = stream.read(SIZE)
    assert read_head(stream, 10_000, first).data == whole.data == data
    assert whole.complete


@pytest.mark.parametrize("size", [SIZE - 1, SIZE, SIZE + 1, 2 * SIZE - 1, 2 * SIZE, 5 * SIZE])
def test_a_head_goes_to_the_end_of_the_first_line_and_says_whether_that_is_all(size: int) -> None:
    line = b"x" * size
    alone = read_head(io.BytesIO(line), 10 * SIZE)
    assert (alone.data, alone.complete) == (line, True)
    followed = read_head(io.BytesIO(line + b"\n" + line * 9), 10 * SIZE)
    assert followed.data.startswith(line + b"\n")
    assert not followed.complete


@pytest.mark.parametrize("odd", [r'"\ud83d"', "NaN", "1e999", str(2**70), '"\ud83d"', '1, "odd": 2'])
@pytest.mark.parametrize("gap", ["", "\n", "\r\n{}"])
def test_what_only_the_exact_reader_reads_hides_no_format(odd: str, gap: str) -> None:
    journal = f'{{"event": "start", "format": "tracemark/journal/1", "run": {{"odd": {odd}}}}}{gap}'
    atif = f'[{{"agent": {{"extra": {{"odd": {odd}}}}}, "steps": [], "schema_version": "ATIF-v1.8"}}]{gap}'
    chat = f'{{"messages": "[{{\\"role\\": \\"user\\"}}]", "seed": {{"odd": {odd}}}}}{gap}'
    for name, text in (("journal", journal), ("atif", atif), ("openai-chat", chat)):
        head = Head(text.encode("utf-8", "surrogatepass"), True)
        found = detect.importer(name)
        assert (detect.detect(head).importer, found.recognise(head)) == (found, found.surest)
        assert head.lines == gap.endswith("}")


def test_what_is_cut_is_not_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(digest, "loads", read.append)
    assert Head(b'{"a": "\\ud83d", "steps": [1, 2', False).value is None
    assert read == []


def test_an_escaped_name_may_be_there_and_a_missing_one_is_not() -> None:
    assert not Head(rb'{"a": "\\u00e9 \\n"}', True).may_hold(b'"messages"')
    assert Head(rb'{"m\u0065ssages": 1}', True).may_hold(b'"messages"')
    assert Head(b'{"messages": 1}', True).may_hold(b'"messages"')


def test_of_a_first_line_too_long_to_be_parsed_only_the_beginning_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "_PARSED", 2 * SIZE)
    long = b'{"a": [' + b"1, " * 7 * SIZE + b"1]}"
    alone = read_head(io.BytesIO(long), 100 * SIZE)
    assert (len(alone.data), alone.complete, alone.lines, alone.members) == (2 * SIZE, False, False, {"a": "["})
    followed = read_head(io.BytesIO(long + b'\n{"b": 1}' * 9), 100 * SIZE)
    assert (followed.complete, followed.lines, followed.value) == (False, True, {"b": 1})
    assert len(followed.data) < 3 * SIZE + 1
    beyond = read_head(io.BytesIO(long + b'\n{"b": 1}' * 9), 10 * SIZE)
    assert (beyond.complete, beyond.lines) == (False, False)
