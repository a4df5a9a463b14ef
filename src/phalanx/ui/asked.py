"""From requests to plain functions and back: arguments are checked, errors are one line of JSON."""

import inspect
import json
import sys
import traceback
import typing
from collections.abc import Callable
from types import UnionType

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from phalanx.errors import ConfigError, PhalanxError
from phalanx.ui.busy import busy

LONGEST_WORD = 1000
WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


class NotHere(ConfigError):
    """Something that is asked for and is not there."""


class TooMuch(ConfigError):
    """More at a time than one machine should do."""


class TooLate(ConfigError):
    """A move for a turn that is over."""


STATUS: dict[type[Exception], int] = {NotHere: 404, TooMuch: 429, TooLate: 409}


def answers(ask: Callable[..., object]) -> Callable[[Request], object]:
    """An endpoint of a plain function: what the address and the body name are its arguments.

    It is called in a thread, so that neither other requests nor the end of the server wait for it.
    What it gives is sent as JSON, unless it is a `Response` already.
    """
    hints = typing.get_type_hints(ask)
    parameters = inspect.signature(ask).parameters

    async def endpoint(request: Request) -> Response:
        given: dict[str, object] = dict(request.query_params)
        if request.method != "GET":
            given |= _object_in(await request.body())
        given |= request.path_params
        for name in given:
            if name not in parameters:
                raise ConfigError(f"nobody asked for {name:.80}")
        for name, parameter in parameters.items():
            if name not in given and parameter.default is parameter.empty:
                raise ConfigError(f"{name} is missing")
        known = {name: understood(name, value, hints[name]) for name, value in given.items()}
        found = await to_thread.run_sync(_ask, ask, known, abandon_on_cancel=True)
        return found if isinstance(found, Response) else as_json(found)

    return endpoint


def _ask(ask: Callable[..., object], known: dict[str, object]) -> object:
    with busy():
        return ask(**known)


def as_json(value: object, status: int = 200) -> Response:
    packed = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Response(packed, status, media_type="application/json")


def understood(name: str, value: object, hint: object) -> object:
    """A value of the kind that is wanted; addresses have words only, which may be numbers."""
    kinds = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if value is None and type(None) in kinds:
        return None
    kind = next(one for one in kinds if one is not type(None))
    if typing.get_origin(kind) is list and isinstance(value, list):
        (inner,) = typing.get_args(kind)
        return [understood(name, one, inner) for one in value]
    if kind is int and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:LONGEST_WORD])
    is_right = isinstance(value, kind) if isinstance(kind, type) else False
    if not is_right or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{name} must be {WORDS.get(kind, 'a list')}, got {value!r:.80}")
    if isinstance(value, str) and len(value) > LONGEST_WORD:
        raise ConfigError(f"{name} is longer than {LONGEST_WORD} characters")
    return value


def _object_in(body: bytes) -> dict[str, object]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise ConfigError("what was sent is no JSON") from None
    if not isinstance(given, dict):
        raise ConfigError("what was sent is no JSON object")
    return given


# --- errors ---------------------------------------------------------------------------------------


async def our_error(_request: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)
    return as_json({"error": " ".join(str(error).split())}, status)


async def http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = "there is no such page" if error.status_code == 404 else error.detail
    return as_json({"error": said}, error.status_code)


async def our_mistake(_request: Request, error: Exception) -> Response:
    """What nobody expected: the terminal has the details, the page says where they are."""
    traceback.print_exception(error, file=sys.stderr)
    return as_json({"error": "phalanx made a mistake; the terminal it runs in says which"}, 500)


HANDLERS = {
    PhalanxError: our_error,
    HTTPException: http_error,
    OSError: our_mistake,
    Exception: our_mistake,
}
