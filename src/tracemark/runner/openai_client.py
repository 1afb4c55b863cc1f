"""A copy of somebody's OpenAI client that sends by way of a recording.

What is listened to is the HTTP client below the SDK: there every call passes, whether it streams or not, parses its
reply or asks for the raw response, and there stands what is really sent and what really came.

Invariants:
- nothing on the way changes: requests are built and sent by the client's own HTTP client, with its own keys, proxies,
  retries and hooks; responses, bytes and errors are handed on as they are;
- the client that was given is left as it was, and the copy shares its connections;
- what could get a model's reply past the recording is refused before it is sent: every path that is posted to but the
  chat completions and those that are known to give none;
- no library is imported: who has a client has imported its HTTP library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, TypeVar

from tracemark import digest
from tracemark.errors import UsageError
from tracemark.runner import openai_stream
from tracemark.runner.openai_calls import Call, Following, read
from tracemark.runner.openai_messages import error_of
from tracemark.runner.openai_stream import Reply

OpenAIClient = TypeVar("OpenAIClient")
"""The class of a client; its copy is of the same."""

_RECORDED = "/chat/completions"
_WITHOUT_REPLY = re.compile(
    r"/(?:audio/(?:speech|transcriptions|translations|voices|voice_consents)|embeddings|moderations|files"
    r"|images/(?:edits|generations|variations)|containers(?:/[^/]+/files)?"
    r"|uploads(?:/[^/]+/(?:cancel|complete|parts))?"
    r"|vector_stores(?:/[^/]+(?:/(?:search|files(?:/[^/]+)?|file_batches(?:/[^/]+/cancel)?))?)?)$"
)
"""What is posted to without getting a reply of a chat model; what stands in front is a server's own affair."""

_LIBRARIES = ("httpx", "httpx2")
_EVENT_STREAM = "text/event-stream"
_DEPLOYMENT = re.compile(r"/deployments/[^/]+")
_EVENT = re.compile(rb".+?(?:\n\n|\r\n\r\n|\Z)", re.DOTALL)


def recorded(client: OpenAIClient, following: Following) -> OpenAIClient:
    """Return a copy of a client whose calls are recorded.

    Args:
        client: a client of the `openai` package.
        following: gets the calls.

    Raises:
        UsageError: when it is no such client.
    """
    inner, copy = getattr(client, "_client", None), getattr(client, "copy", None)
    kind = _kind(inner)
    if kind is None or not callable(copy):
        raise UsageError(
            f"an OpenAI client is needed, not {type(client).__name__}",
            hint="recorder.openai(OpenAI()) or recorder.openai(AsyncOpenAI())",
        )
    made: OpenAIClient = copy(http_client=_listening(*kind)(inner, following))
    return made


def _kind(inner: Any) -> tuple[ModuleType, bool] | None:
    """Return the HTTP library of a client, and whether it is an asynchronous one; None when it is no HTTP client."""
    for base in type(inner).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LIBRARIES and base.__name__ in ("Client", "AsyncClient"):
            return sys.modules[library], base.__name__ == "AsyncClient"
    return None


class _Exchange:
    """One request on its way, and the bytes that came back.

    Args:
        following: gets what came of it.
        call: the request.
    """

    def __init__(self, following: Following, call: Call) -> None:
        self._following = following
        self._call = call
        self._raw: list[bytes] = []
        self._response: Any = None
        self._told = False

    def lost(self, error: BaseException) -> None:
        """Note that no response came."""
        self._tell(self._following.failed, {"error": {"type": type(error).__name__}})

    def came(self, response: Any, stream: Callable[[Any, _Exchange], Any]) -> None:
        """Note that a response came; one whose body is still to be read is listened to."""
        self._response = response
        if response.is_stream_consumed or response.is_closed:
            self._judge(response.content)
        else:
            response.stream = stream(response.stream, self)
            self._following.arriving(self._call, self.end)

    def pieces(self, raw: bytes) -> Iterator[bytes]:
        """Yield the next bytes of the body as they came, cut behind each event, and take each.

        A program that leaves a stream has seen the events that were pulled, and none that merely came with them.
        """
        for piece in _EVENT.findall(raw):
            self._raw.append(piece)
            yield piece

    def end(self) -> None:
        """Note that no more bytes are read, or count."""
        if self._told:
            return
        raw, self._raw = b"".join(self._raw), []
        response = self._response
        headers = [pair for pair in response.headers.multi_items() if pair[0].lower() != "content-length"]
        library = sys.modules[type(response).__module__.partition(".")[0]]
        try:
            # the library's own decoder, for a body that was compressed
            content = type(response)(response.status_code, headers=headers, content=raw).content
        except library.HTTPError as error:
            self.lost(error)
            return
        self._judge(content)

    def _judge(self, content: bytes) -> None:
        response = self._response
        if response.status_code >= 400:
            self._tell(self._following.failed, {"status": response.status_code, **_error(content)})
        elif response.headers.get("content-type", "").partition(";")[0].strip().lower() == _EVENT_STREAM:
            self._tell(self._following.replied, partial(openai_stream.read, content))
        else:
            self._tell(self._following.replied, partial(_whole, content))

    def _tell(self, to: Callable[[Call, Any], None], what: Any) -> None:
        if not self._told:
            self._told = True
            to(self._call, what)


def _whole(content: bytes) -> Reply:
    """Return the reply of a body that was not streamed."""
    value = _loaded(content)
    error = value.get("error") if isinstance(value, dict) else {"type": "unreadable reply"}
    completion = value if isinstance(value, dict) and value.get("choices") else None
    return Reply(completion, completion is not None, error or None)


def _error(content: bytes) -> dict[str, Any]:
    value = _loaded(content)
    found = error_of(value.get("error")) if isinstance(value, dict) else {}
    return {"error": found} if found else {}


def _loaded(content: bytes) -> Any:
    try:
        return digest.loads(content).value
    except digest.NotJSONError:
        return None


def _admitted(request: Any, following: Following) -> Any:
    """Return a request that may be sent.

    Raises:
        UsageError: when its reply could not be recorded.
    """
    if request.method != "POST":
        return request
    # a deployment is named as somebody likes
    path = _DEPLOYMENT.sub("", request.url.path.rstrip("/"))
    if path.endswith(_RECORDED):
        following.require(request.read())
    elif _WITHOUT_REPLY.search(path) is None:
        raise UsageError(
            f"{path} cannot be recorded: only chat completions can",
            hint="call client.chat.completions, or send this one by the client that the recorder was given",
        )
    return request


def _exchange(request: Any, following: Following) -> _Exchange | None:
    if request.method != "POST" or not request.url.path.rstrip("/").endswith(_RECORDED):
        return None
    return _Exchange(following, read(request.content))


@lru_cache(maxsize=4)
def _listening(library: Any, is_async: bool) -> Callable[[Any, Following], Any]:
    """Return the class of HTTP clients that send by way of another one and listen.

    It is made when the first client is there, because its base is that client's library's.
    """
    base = library.AsyncClient if is_async else library.Client
    transport = library.AsyncBaseTransport if is_async else library.BaseTransport
    stream = _listening_stream(library, is_async)

    def init(self: Any, inner: Any, following: Following) -> None:
        # nothing is ever sent by it, so it needs neither certificates nor proxies
        base.__init__(self, transport=transport(), trust_env=False, timeout=inner.timeout)
        self._inner, self._following = inner, following

    def build_request(self: Any, *arguments: Any, **named: Any) -> Any:
        return _admitted(self._inner.build_request(*arguments, **named), self._following)

    def send(self: Any, request: Any, **named: Any) -> Any:
        exchange = _exchange(request, self._following)
        if exchange is None:
            return self._inner.send(request, **named)
        try:
            response = self._inner.send(request, **named)
        except BaseException as error:
            exchange.lost(error)
            raise
        exchange.came(response, stream)
        return response

    async def send_async(self: Any, request: Any, **named: Any) -> Any:
        exchange = _exchange(request, self._following)
        if exchange is None:
            return await self._inner.send(request, **named)
        try:
            response = await self._inner.send(request, **named)
        except BaseException as error:
            exchange.lost(error)
            raise
        exchange.came(response, stream)
        return response

    def close(self: Any) -> None:
        self._inner.close()

    async def aclose(self: Any) -> None:
        await self._inner.aclose()

    closing: dict[str, Any] = {"aclose": aclose} if is_async else {"close": close}
    members = {
        "__init__": init,
        "build_request": build_request,
        "send": send_async if is_async else send,
        "is_closed": property(lambda self: self._inner.is_closed),
        **closing,
    }
    return type(base.__name__, (base,), members)


def _listening_stream(library: Any, is_async: bool) -> Callable[[Any, _Exchange], Any]:
    base = library.AsyncByteStream if is_async else library.SyncByteStream

    def init(self: Any, inner: Any, exchange: _Exchange) -> None:
        self._inner, self._exchange = inner, exchange

    def iterate(self: Any) -> Iterator[bytes]:
        try:
            for raw in self._inner:
                yield from self._exchange.pieces(raw)
        finally:
            self._exchange.end()

    async def iterate_async(self: Any) -> AsyncIterator[bytes]:
        try:
            async for raw in self._inner:
                for piece in self._exchange.pieces(raw):
                    yield piece
        finally:
            self._exchange.end()

    def close(self: Any) -> None:
        self._exchange.end()
        self._inner.close()

    async def aclose(self: Any) -> None:
        self._exchange.end()
        await self._inner.aclose()

    reading = {"__aiter__": iterate_async, "aclose": aclose} if is_async else {"__iter__": iterate, "close": close}
    return type("RecordedStream", (base,), {"__init__": init, **reading})
