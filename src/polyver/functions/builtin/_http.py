"""`HTTPCall`: sends an HTTP request to any server."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from polyver.core import PolyverError, listed
from polyver.functions.registering import Alias, Description, Duration, register
from polyver.functions.runtime.context import AsyncContext

__all__: list[str] = []

_LARGEST = 128 * 1024
_SHOWN = 500
_MINUTE = Duration("1m")


class CallRefused(PolyverError):
    """The server sent an unexpected response, or it sent no response."""


@register("HTTPCall", outputs=["status", "headers", "body", "json"])
async def http_call(
    ctx: AsyncContext,
    *,
    url: Annotated[str, Description("The URL: http:// or https://.")],
    method: Annotated[str, Description("GET, POST, PUT, PATCH, DELETE, HEAD, …")] = "GET",
    headers: Annotated[dict[str, str], Description("Additional headers.")] = {},  # noqa: B006
    body: Annotated[
        Any, Description("A string is sent unchanged; anything else is sent as JSON.")
    ] = None,
    expect: Annotated[
        list[int], Alias("expectStatus"), Description("Accepted status codes. Default: 2xx.")
    ] = [],  # noqa: B006
    timeout: Annotated[Duration, Description("Timeout of the request.")] = _MINUTE,
) -> dict[str, Any]:
    """Send one HTTP request, and return the response.

    Returned values: `status`, `headers`, `body` as text, and `json` if the body is JSON. The call
    fails if the status code is not accepted, or if the body is larger than 128 KiB. The function
    follows redirects. It is not idempotent: if the connection is lost, the server may or may not
    have processed the request.
    """
    import httpx2  # imported here because the import takes long

    content, more = _content(body)
    given = {name.lower() for name in headers}
    sent = {**headers, **{name: value for name, value in more.items() if name not in given}}
    try:
        async with asyncio.timeout(min(timeout, ctx.remaining)):
            status, answered, text = await _sent(method.upper(), url, sent, content)
    except TimeoutError:
        raise CallRefused(f"{url} did not answer within {timeout}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        said = str(error) or type(error).__name__
        raise CallRefused(f"{method.upper()} {url} failed: {said}") from None
    if status not in expect if expect else not 200 <= status < 300:
        wanted = listed(list(map(str, expect))) if expect else "2xx"
        raise CallRefused(f"{url} answered {status}, expected {wanted}: {ctx.mask(text)[:_SHOWN]}")
    found = {"status": status, "headers": answered, "body": text}
    if "json" in answered.get("content-type", ""):
        try:
            found["json"] = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            ctx.log.warning(
                "the response is not valid JSON, although its content type says so", url=url
            )
    return found


def _content(body: object) -> tuple[bytes | None, dict[str, str]]:
    if body is None:
        return None, {}
    if isinstance(body, str):
        return body.encode(), {}
    return msgspec.json.encode(body), {"content-type": "application/json"}


async def _sent(
    method: str, url: str, headers: dict[str, str], content: bytes | None
) -> tuple[int, dict[str, str], str]:
    import httpx2

    async with (
        httpx2.AsyncClient(follow_redirects=True, timeout=None) as client,
        client.stream(method, url, headers=headers, content=content) as response,
    ):
        read = b""
        async for piece in response.aiter_bytes():
            read += piece
            if len(read) > _LARGEST:
                raise CallRefused(f"{url} answers with more than {_LARGEST >> 10} KiB")
        answered = {name.lower(): value for name, value in response.headers.items()}
        return response.status_code, answered, read.decode(errors="replace")
