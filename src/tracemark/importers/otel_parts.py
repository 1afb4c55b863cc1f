"""Messages of the three conventions as messages of a chat: parts, flattened members, and those of OpenInference.

A part that ATIF has (text, images, sounds) becomes one; reasoning, calls and answers go to the
places of their own; any other part (a file, a link, what a provider's own tool did) is kept in `extra.other_parts` by
its place in the message. A message with several answers becomes several, for each is the observation of one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracemark import digest
from tracemark.importers.conversation import ANSWERS, SPEAKERS, Conversation
from tracemark.importers.media import IMAGES, SOUNDS, image_type
from tracemark.importers.otel_values import parsed

_RESPONSES = ("response", "result", "content")
_SOUND_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_PLACED = ("type", "content", "modality", "mime_type", "uri")
_TEXTS = ("text", "input_text", "output_text")

Chat = dict[str, Any]
"""A message as `Conversation.add` takes it."""


class Message(NamedTuple):
    """One message, and by what it is known again."""

    chat: Any
    key: tuple[Any, ...]
    """Who speaks, the text, and the calls by name and arguments: what is the same when a history is sent again."""
    parts: list[dict[str, Any]] | None = None
    """What the message says, as ATIF has it; None where `Conversation.add` finds that by itself."""

    def add_to(self, conversation: Conversation, place: str) -> dict[str, Any]:
        """Add the message to a conversation; return the step that it became or went to.

        Raises:
            UnknownRoleError, NotMessagesError: as `Conversation.add`.
        """
        step = conversation.add(self.chat, place)
        if self.parts is not None:
            is_answer = self.chat.get("role") in ANSWERS
            holder, name = (step["observation"]["results"][-1], "content") if is_answer else (step, "message")
            holder[name] = self.parts
            if "other_parts" in self.chat:
                conversation.repairs.append("parts of messages that ATIF has not: kept in extra.other_parts")
        return step


def messages(raw: Iterable[Any]) -> list[Message]:
    """Return recorded messages as messages of a chat, each with its key; what is none stays for `Conversation`."""
    return [_message(chat) for one in raw for chat in chats(one)]


def _message(chat: Any) -> Message:
    content = chat.get("content") if isinstance(chat, dict) else None
    if isinstance(content, list) and not all(map(_is_text, content)):
        made = [_atif(part) for part in content]
        other = {str(number): part for number, part in enumerate(content) if made[number] is None}
        rest = {**chat, "content": [], **({"other_parts": {**other, **chat.get("other_parts", {})}} if other else {})}
        return Message(rest, key_of(chat), [part for part in made if part is not None])
    return Message(chat, key_of(chat))


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS


def _atif(part: Any) -> dict[str, Any] | None:
    """Return a part as ATIF has it; None for one that it has not."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    held = part.get(kind) if kind in ("image_url", "input_audio") else None
    if kind == "image_url":
        url = held.get("url") if isinstance(held, dict) else held
        media = image_type(url) if isinstance(url, str) else None
        return None if media is None else {"type": "image", "source": {"media_type": media, "path": url}}
    sound = SOUNDS.get(str(held.get("format"))) if isinstance(held, dict) else None
    if isinstance(held, dict) and sound is not None and isinstance(held.get("data"), str):
        return {"type": "audio", "source": {"media_type": sound, "path": f"data:{sound};base64,{held['data']}"}}
    return None


def chats(message: Any) -> list[Any]:
    """Return what one recorded message is in a chat; anything that is no object is returned as it is."""
    if not isinstance(message, dict):
        return [message]
    if isinstance(message.get("message"), dict) and "role" not in message:
        return [_of_openinference(message["message"])]
    parts = message.get("parts")
    if isinstance(parts, list):
        return _of_parts(message, parts)
    chat = dict(message)
    if "parts" in chat and "content" not in chat:
        chat["content"] = chat.pop("parts")
    return [chat]


def key_of(chat: Any) -> tuple[Any, ...]:
    """Return by what a message is known when it is sent again: without ids, reasoning and reasons to finish."""
    if not isinstance(chat, dict):
        return (None, digest.canonical(chat))
    role, content = chat.get("role"), chat.get("content")
    speaker = SPEAKERS.get(role, "tool" if role in ANSWERS else role) if isinstance(role, str) else str(role)
    calls = chat.get("tool_calls")
    found = tuple(_call_key(call) for call in calls) if isinstance(calls, list) else ()
    return (speaker, _text_key(content), *found)


def is_reply(chat: Any) -> bool:
    """Return whether a message is one that a model may have written."""
    return isinstance(chat, dict) and isinstance(chat.get("role"), str) and SPEAKERS.get(chat["role"]) == "agent"


def is_system(chat: Any) -> bool:
    """Return whether a message is of the harness."""
    return isinstance(chat, dict) and isinstance(chat.get("role"), str) and SPEAKERS.get(chat["role"]) == "system"


def _text_key(content: Any) -> Any:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [
            part["text"]
            for part in content
            if isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)
        ]
        if len(texts) == len(content):
            return "".join(texts)
    return digest.canonical(content)


def _call_key(call: Any) -> Any:
    if not isinstance(call, dict):
        return digest.canonical(call)
    function = call.get("function")
    holder = function if isinstance(function, dict) else call
    return (str(holder.get("name")), digest.canonical(parsed(holder.get("arguments"))))


class _Parts:
    """The parts of one message, each put to its place."""

    def __init__(self) -> None:
        self.content: list[Chat] = []
        self.reasoning: list[str] = []
        self.calls: list[Chat] = []
        self.answers: list[Chat] = []
        self.other: dict[str, Any] = {}
        self.members: dict[str, Any] = {}

    def add(self, part: Any, number: int) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("content") if isinstance(part, dict) else None
        if kind == "tool_call":
            self.calls.append({name: value for name, value in part.items() if name != "type"})
        elif kind == "tool_call_response":
            self.answers.append(_answer(part))
        elif kind == "text" and isinstance(text, str):
            self.content.append({"type": "text", "text": text})
            self._keep(part, number)
        elif kind in ("reasoning", "thinking") and isinstance(text, str):
            self.reasoning.append(text)
            self._keep(part, number)
        elif (media := _blob(part, kind, text)) is not None:
            self.content.append(media)
            self._keep(part, number)
        else:
            self.other[str(number)] = part

    def _keep(self, part: Mapping[str, Any], number: int) -> None:
        left = {name: value for name, value in part.items() if name not in _PLACED and value is not None}
        if left:
            self.members[str(number)] = left


def _blob(part: Any, kind: Any, data: Any) -> Chat | None:
    """Return an image or a sound that stands in its message, or an image that is named, as chats have it."""
    media = part.get("mime_type") if isinstance(part, dict) else None
    if not isinstance(media, str):
        return None
    if kind == "blob" and isinstance(data, str):
        if media in _SOUND_FORMATS:
            return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUND_FORMATS[media]}}
        return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}} if media in IMAGES else None
    uri = part.get("uri")
    if kind == "uri" and media in IMAGES and isinstance(uri, str) and image_type(uri) == media:
        return {"type": "image_url", "image_url": {"url": uri}}
    return None


def _of_parts(message: Mapping[str, Any], parts: list[Any]) -> list[Chat]:
    found = _Parts()
    for number, part in enumerate(parts):
        found.add(part, number)
    rest = {name: value for name, value in message.items() if name != "parts"}
    if found.answers and not (found.content or found.calls or found.reasoning or found.other):
        first = found.answers[0]
        left = {name: value for name, value in rest.items() if name != "role" and name not in first}
        return [{**first, **left}, *found.answers[1:]]
    chat: Chat = rest
    if len(found.content) == 1 and found.content[0]["type"] == "text":
        chat["content"] = found.content[0]["text"]
    elif found.content:
        chat["content"] = found.content
    if found.reasoning:
        chat["reasoning_content"] = "\n".join(found.reasoning)
        if len(found.reasoning) > 1:
            chat["reasoning_parts"] = found.reasoning
    if found.calls:
        chat["tool_calls"] = found.calls
    if found.other:
        chat["other_parts"] = found.other
    if found.members:
        chat["part_members"] = found.members
    return [*found.answers, chat]


def _answer(part: Mapping[str, Any]) -> Chat:
    rest = {name: value for name, value in part.items() if name != "type"}
    chat: Chat = {"role": "tool"}
    if "id" in rest:
        chat["tool_call_id"] = rest.pop("id")
    place = next((name for name in _RESPONSES if name in rest), None)
    if place is not None:
        chat["content"] = rest.pop(place)
    return {**chat, **rest}


def _of_openinference(message: Mapping[str, Any]) -> Chat:
    chat = {name: value for name, value in message.items() if name not in ("contents", "tool_calls")}
    contents = message.get("contents")
    if isinstance(contents, list):
        parts = [_content(one) for one in contents]
        chat["content" if "content" not in chat else "contents"] = parts
    elif contents is not None:
        chat["contents"] = contents
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        chat["tool_calls"] = [
            one["tool_call"] if isinstance(one, dict) and isinstance(one.get("tool_call"), dict) else one
            for one in calls
        ]
    elif calls is not None:
        chat["tool_calls"] = calls
    name = chat.pop("function_call_name", None)
    if name is not None:
        chat["function_call"] = {"name": name, "arguments": chat.pop("function_call_arguments_json", None)}
    return chat


def _content(one: Any) -> Any:
    """Return one of OpenInference's contents as a part of a chat message; any other value as it is."""
    held = one.get("message_content") if isinstance(one, dict) else None
    if not isinstance(held, dict):
        return one
    image = held.get("image")
    inner = image.get("image") if isinstance(image, dict) else None
    if held.get("type") == "image" and isinstance(inner, dict) and isinstance(inner.get("url"), str):
        return {"type": "image_url", "image_url": {"url": inner["url"]}}
    return held
