"""What observations say of handlers: templates rendered again corroborate, everything else can only contradict."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemark.harness.match import Content, Contradiction, Judgement, fits
from tracemark.harness.templates import EXCERPT

TEMPLATE = "<code>{{ output.code }}</code>\n<text>\n{{ output.text }}\n</text>"


def handler(template: str | None = TEMPLATE, name: str = "frame", **claims: Any) -> dict[str, Any]:
    return {"name": name, "entry": "code.py:run", "template": template, **claims}


def raw(text: str = "ok", code: int = 0) -> dict[str, Any]:
    return {"output": {"text": text, "code": code}}


def shown(text: str = "ok", code: int = 0) -> str:
    return f"<code>{code}</code>\n<text>\n{text}\n</text>"


def content(*seen: tuple[dict[str, Any] | None, str]) -> Content:
    """A trace with one observation per step: its raw output, None where the source holds none, and its text."""
    return Content(
        observations=[(step, text) for step, (_, text) in enumerate(seen, 2)],
        raw_outputs=[(step, given, text) for step, (given, text) in enumerate(seen, 2) if given is not None],
    )


def evidence(judgement: Judgement) -> dict[str, str]:
    return dict(judgement.evidence["observation_handlers"])


def test_a_template_that_gives_every_observation_from_its_raw_output_corroborates(matcher: Any) -> None:
    judgement = matcher(observation_handlers=[handler()]).judge(content((raw(), shown()), (raw("b", 1), shown("b", 1))))
    assert evidence(judgement) == {"frame": "corroborated"}
    assert not judgement.contradicted


def test_one_observation_that_the_template_does_not_give_contradicts_with_step_and_text(matcher: Any) -> None:
    judge = matcher(observation_handlers=[handler()])
    differing = content((raw(), shown()), (raw("b"), shown("b") + "\n"), (raw("c"), "c"))
    judgement = judge.judge(differing)
    assert evidence(judgement) == {"frame": "claimed"}
    place = "rendered from the raw output, at character 32: expected '…t>\\nb\\n</text>' found '…t>\\nb\\n</text>\\n'"
    assert judgement.contradictions == [Contradiction("observation_handlers", "frame", 3, place)]
    assert judge.excludes(differing)


def test_the_place_of_a_difference_is_short_however_long_the_texts_are(matcher: Any) -> None:
    judge = matcher(observation_handlers=[handler("{{ output }}")])
    (found,) = judge.judge(content(({"output": "é" * 9_000 + "a"}, "é" * 9_000 + "b" * 9_000))).contradictions
    assert len(found.text) <= EXCERPT
    assert "at character 9001" in found.text


@pytest.mark.parametrize(
    "seen",
    [
        [],
        [(None, shown())],
        [(None, "anything")],
        [(raw(), shown()), (None, shown("b"))],
        [({"output": {"text": "ok"}}, shown())],
        [({"raw": "ok"}, "another text")],
    ],
    ids=["no observation", "no raw output", "no raw output, other text", "one without", "member missing", "none named"],
)
def test_without_the_raw_output_of_every_observation_nothing_is_proved(matcher: Any, seen: Any) -> None:
    judgement = matcher(observation_handlers=[handler()]).judge(content(*seen))
    assert evidence(judgement) == {"frame": "claimed"}
    assert not judgement.contradicted


def test_where_some_observations_have_a_raw_output_those_can_contradict(matcher: Any) -> None:
    judgement = matcher(observation_handlers=[handler()]).judge(content((None, "anything"), (raw(), "ok")))
    assert [place.step for place in judgement.contradictions] == [3]


@pytest.mark.parametrize("template", ["{{ output * 9 }}", "{{ output.format(1) }}", "x" * 10_000])
def test_a_template_that_is_not_rendered_proves_nothing(matcher: Any, template: str) -> None:
    judgement = matcher(observation_handlers=[handler(template)]).judge(content((raw(), shown())))
    assert evidence(judgement) == {"frame": "claimed"}
    assert not judgement.contradicted


def test_what_a_handler_gives_to_another_one_is_compared_with_nothing_that_the_model_saw(matcher: Any) -> None:
    judge = matcher(observation_handlers=[handler(name="frame"), handler(None, "cut")])
    for seen in (shown()[:9], shown()):
        judgement = judge.judge(content((raw(), seen)))
        assert not judgement.contradicted
        assert evidence(judgement) == {"frame": "claimed", "cut": "claimed"}


def test_a_template_that_asks_whether_a_value_is_there_contradicts_no_source_that_lacks_it(matcher: Any) -> None:
    optional = handler("{% if error is defined %}<error>{{ error }}</error>{% endif %}{{ output.text }}")
    judgement = matcher(observation_handlers=[optional]).judge(content((raw(), "<error>late</error>ok")))
    assert not judgement.contradicted
    assert evidence(judgement) == {"frame": "claimed"}


def test_of_several_handlers_only_those_with_a_template_are_corroborated(matcher: Any) -> None:
    chain = [handler(None, "cut", max_characters=400), handler()]
    judgement = matcher(observation_handlers=chain).judge(content((raw(), shown())))
    assert evidence(judgement) == {"cut": "claimed", "frame": "corroborated"}
    both = matcher(observation_handlers=[handler(None, "cut", max_characters=4), handler()])
    broken = both.judge(content((raw(), shown("x"))))
    assert [place.part for place in broken.contradictions] == ["cut", "frame"]


def test_fits_is_decided_by_a_handler_alone_where_the_raw_output_shows_it(matcher: Any) -> None:
    one, other = matcher(observation_handlers=[handler()]), matcher(observation_handlers=[handler("{{ output.text }}")])
    silent = matcher(observation_handlers=[handler(None)])
    content_of_one = content((raw(), shown()))
    assert fits([one, other, silent], content_of_one) == sorted([one.fingerprint, silent.fingerprint])
    assert one.compared != other.compared


@given(st.lists(st.tuples(st.text(), st.integers()), min_size=1, max_size=5))
def test_what_a_template_gave_never_contradicts_it_and_corroborates(
    judged: Any, outputs: list[tuple[str, int]]
) -> None:
    judgement = judged.judge(content(*((raw(text, code), shown(text, code)) for text, code in outputs)))
    assert evidence(judgement) == {"frame": "corroborated"}
    assert not judgement.contradicted


@given(st.text(), st.text())
def test_another_text_than_the_template_gives_always_contradicts(judged: Any, text: str, found: str) -> None:
    judgement = judged.judge(content((raw(text), found)))
    assert judgement.contradicted is (found != shown(text))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import json

    from tracemark.harness.loading import load
    from tracemark.harness.match import Matcher

    folder = tmp_path_factory.mktemp("judged")
    (folder / "code.py").write_text("def run(raw):\n    return raw\n")
    members = {"format": "tracemark/harness/1", "observation_handlers": [handler()]}
    (folder / "harness.yaml").write_text(json.dumps(members))
    return Matcher(load(folder))
