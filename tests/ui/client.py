"""A client of the web app that sends exactly what it is told, well-behaved or not."""

import http.client
import json
from typing import Any, NamedTuple

from phalanx.ui.serve import Served


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks a server; with its token unless another header is given for it."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, {"x-phalanx-token": self.served.token} | _named(headers))

    def post(self, path: str, sent: Any = None, **headers: str) -> Answer:
        own = {"x-phalanx-token": self.served.token, "content-type": "application/json"}
        body = sent if isinstance(sent, bytes) else json.dumps(sent or {}).encode()
        return self.ask("POST", path, own | _named(headers), body)

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=600)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
