"""The web app answers its own page on this machine, and nobody else."""

import http.client
import socket
from pathlib import Path

import pytest

from phalanx.ui.guard import MOST_BYTES
from phalanx.ui.serve import serving
from tests.ui.client import Client

PATHS = ("/", "/assets/app.js", "/assets/base.css", "/api/runs", "/nothing")


def cookie_of(client: Client) -> str:
    answer = client.ask("GET", f"/?token={client.served.token}", {})
    assert answer.status == 200
    return answer.headers["set-cookie"]


# --- the token ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("given", ["", "wrong", "?", "cut"])
def test_without_the_right_token_nothing_is_answered(client: Client, path: str, given: str) -> None:
    token = client.served.token[:-1] if given == "cut" else given
    for headers in ({}, {"x-phalanx-token": token}, {"cookie": f"phalanx-1={token}"}):
        answer = client.ask("GET", path, headers)
        assert (answer.status, answer.body) == (403, b"The token is missing or wrong")
    assert client.ask("GET", f"/?token={token}", {}).status == 403
    assert "set-cookie" not in client.ask("GET", f"/?token={token}", {}).headers
    assert client.ask("POST", path, {"content-type": "application/json"}, b"{}").status == 403


def test_the_address_gives_a_cookie_that_no_other_site_can_read_or_send(client: Client) -> None:
    pair, *attributes = cookie_of(client).split("; ")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert client.ask("GET", "/assets/app.js", {"cookie": f"other=a[; {pair}"}).status == 200


def test_the_token_counts_in_the_address_of_the_page_alone(client: Client) -> None:
    assert client.ask("GET", f"/assets/app.js?token={client.served.token}", {}).status == 403


def test_every_server_has_a_token_of_its_own(client: Client, tmp_path: Path) -> None:
    with serving(tmp_path) as other:
        assert other.token != client.served.token
        assert len(other.token) >= 43  # 256 bits
        assert Client(other).get("/", x_phalanx_token=client.served.token).status == 403


def test_a_person_without_the_token_reads_where_to_find_it(client: Client) -> None:
    answer = client.ask("GET", "/", {"accept": "text/html"})
    assert answer.status == 403
    assert b"Open the whole address" in answer.body
    assert client.served.token.encode() not in answer.body


# --- who asks -------------------------------------------------------------------------------------


def test_it_listens_on_this_machine_alone(client: Client) -> None:
    assert client.served.socket.getsockname()[0] == "127.0.0.1"
    with socket.socket() as probe:  # any other address of this machine: 127.0.0.2 is one on Linux
        probe.settimeout(5)
        with pytest.raises(OSError, match=r"refused|unreachable|assign"):
            probe.connect(("127.0.0.2", client.served.port))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:{port}"]
)
def test_another_name_for_this_machine_is_refused(client: Client, host: str) -> None:
    """A site may let its name point to 127.0.0.1: then the browser sends that name."""
    answer = client.get("/assets/app.js", host=host.format(port=client.served.port))
    assert answer.status == 403
    assert client.get("/assets/app.js", host=f"localhost:{client.served.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    pair = cookie_of(client).split(";")[0]
    for headers in ({"cookie": pair}, {"x-phalanx-token": client.served.token}):
        headers |= {"origin": origin, "content-type": "application/json"}
        assert client.ask("GET", "/assets/app.js", headers).status == 403
        assert client.ask("POST", "/api/games", headers, b"{}").body == b"Another site has asked"


def test_what_changes_something_must_say_where_it_comes_from(client: Client) -> None:
    headers = {"cookie": cookie_of(client).split(";")[0], "content-type": "application/json"}
    answer = client.ask("POST", "/api/nothing", headers, b"{}")
    assert (answer.status, answer.body) == (403, b"Who asks is not known")
    answer = client.ask("POST", "/api/nothing", {**headers, "origin": client.served.origin}, b"{}")
    assert answer.status == 404


def test_a_form_of_another_site_is_refused(client: Client) -> None:
    """Without asking first, a browser sends forms and plain text only."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/api/nothing", {}, content_type=kind).status == 415


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_or_port_gets_nothing(client: Client, site: str) -> None:
    pair = cookie_of(client).split(";")[0]
    answer = client.ask("GET", "/assets/app.js", {"cookie": pair, "sec-fetch-site": site})
    assert answer.status == 403
    answer = client.ask("GET", "/assets/app.js", {"cookie": pair, "sec-fetch-site": "same-origin"})
    assert answer.status == 200


# --- what is answered -----------------------------------------------------------------------------


def test_too_long_a_request_is_refused_before_it_is_read(client: Client) -> None:
    assert client.post("/api/nothing", b" " * MOST_BYTES).status == 404
    assert client.post("/api/nothing", b" " * (MOST_BYTES + 1)).status == 413
    connection = http.client.HTTPConnection("127.0.0.1", client.served.port, timeout=600)
    connection.putrequest("POST", "/api/nothing")
    for name, value in (
        ("x-phalanx-token", client.served.token),
        ("content-type", "application/json"),
        ("content-length", str(10**12)),
    ):
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b" " * (MOST_BYTES + 1))  # and never more
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_forbids_what_it_does_not_need(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    ["/assets/../page.py", "/assets/..%2fpage.py", "/assets/%2e%2e/page.py", "/assets/page.py"],
)
def test_only_styles_and_scripts_are_given(client: Client, path: str) -> None:
    assert client.get(path).status == 404


def test_other_ways_of_asking_are_refused(client: Client) -> None:
    for method in ("OPTIONS", "PUT", "DELETE", "TRACE"):
        headers = {"x-phalanx-token": client.served.token, "content-type": "application/json"}
        assert client.ask(method, "/", headers).status == 405
