"""Faults of network and packages in the words of the programs that meet them, and what only sounds like one."""

from __future__ import annotations

import pytest

from tests.failures.runs import bash, line
from tracemark.failures.conditions import shipped
from tracemark.failures.route import Routing, route

NETWORK = (
    ("wget http://pypi.org/a", "wget: unable to resolve host address ‘pypi.org’"),
    ("wget http://pypi.org/a", "wget: unable to resolve host address 'pypi.org'"),
    (
        "apt-get update",
        "Err:1 http://deb.debian.org bookworm InRelease\n  Temporary failure resolving 'deb.debian.org'",
    ),
    ("curl https://x.org", "curl: (5) Could not resolve proxy: proxy.corp.net"),
    ("curl https://x.org", "curl: (6) Couldn't resolve host 'x.org'"),
    ("curl https://x.org", "curl: (7) Failed to connect to x.org port 443 after 21 ms: Couldn't connect to server"),
    ("curl https://x.org", "curl: (28) Operation timed out after 30001 milliseconds with 0 bytes received"),
    ("curl https://x.org", "curl: (35) OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to x.org:443"),
    ("curl https://x.org", "curl: (56) OpenSSL SSL_read: unexpected eof while reading, errno 0"),
    (
        "git clone https://github.com/a/b",
        (
            "fatal: unable to access 'https://github.com/a/b/': Failed to connect to github.com port 443 after 3 ms: "
            "Couldn't connect to server"
        ),
    ),
    ("git fetch", "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com"),
    ("go mod download", 'go: x@v1: Get "https://p.golang.org/a": dial tcp: lookup p.golang.org: no such host'),
    (
        "go mod download",
        'go: x: Get "https://p.golang.org": dial tcp: lookup p.golang.org on 10.0.0.2:53: no such host',
    ),
    ("go mod download", 'go: a: Get "https://p.golang.org/a": dial tcp 203.0.113.4:443: i/o timeout'),
    ("docker pull x", 'Error response from daemon: Get "https://r.docker.io/v2/": net/http: TLS handshake timeout'),
    ("docker pull x", "error during connect: this error may indicate that the docker daemon is not running"),
    ("mvn package", "[ERROR] Unknown host repo.maven.org: java.net.UnknownHostException: repo.maven.org"),
    ("java Main", "java.net.ConnectException: Failed to connect to repo.maven.org/203.0.113.4:443"),
    ("pip install x", "ReadTimeoutError: HTTPSConnectionPool(host='pypi.org', port=443): Read timed out."),
    (
        "pip install x",
        ("pip.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='f.pypi.org', port=443): Read timed out."),
    ),
    (
        "pip install x",
        ("ERROR: <pip.urllib3.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 101]"),
    ),
    ("python a.py", "requests.exceptions.SSLError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded"),
    ("python a.py", "urllib.error.URLError: <urlopen error [Errno -5] No address associated with hostname>"),
    ("python a.py", "socket.gaierror: [Errno 11001] getaddrinfo failed"),
    ("conda install x", "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://repo.anaconda.com/pkgs/x.json>"),
    ("npm install", "npm error network This is a problem related to network connectivity."),
    ("npm install", "npm ERR! network This is a problem related to network connectivity."),
    ("poetry add x", "All attempts to connect to pypi.org failed."),
    ("cargo build", "error: failed to download from `https://index.crates.io/config.json`"),
    (
        "gem install x",
        (
            "ERROR:  Could not find a valid gem 'x' (>= 0), here is why:\n"
            "          Unable to download data from https://rubygems.org/ - no such name"
        ),
    ),
)
PACKAGES = (
    ("apt-get install x", "E: Failed to fetch http://deb.debian.org/pool/x.deb  404  Not Found [IP: 203.0.113.4 80]"),
    ("apt-get update", "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Clearsigned file"),
    ("uv pip install x", "error: Failed to fetch: `https://pypi.org/simple/x/`"),
)
LOCAL = (
    (
        "curl localhost:8000",
        "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server",
    ),
    ("curl 127.0.0.1:80", "curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server"),
    ("curl http://localhost:8000/", "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received"),
    ("curl http://127.0.0.1:8000/", "curl: (56) Recv failure: something odd"),
    ("curl http://[::1]:8000/", "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received"),
    ("python c.py", "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='localhost', port=80): Read timed out."),
    (
        "python c.py",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='0.0.0.0', port=8): Max retries exceeded",
    ),
    ("./client", "dial tcp 127.0.0.1:5432: i/o timeout"),
    ("java Main", "java.net.ConnectException: Failed to connect to localhost/127.0.0.1:8080"),
    ("python c.py", "All attempts to connect to localhost failed."),
)
"""A server that the run itself was to start: whose fault it is that nobody answers is not told by the address."""

HARNESS = (
    "Failed to fetch order: missing required argument 'order_id'",
    "Error: failed to fetch: unknown tool fetch_v2",
    "Error: Failed to fetch URL: parameter `url` is required",
)


def failed(command: str, text: str) -> Routing:
    return route(line(bash(command, text, 1)), shipped())


@pytest.mark.parametrize(("command", "text"), [*NETWORK, *PACKAGES])
def test_network_and_packages_in_the_words_of_their_programs_are_the_environments(command: str, text: str) -> None:
    assert failed(command, text)[:4] == ("environment-fault", "environment", 0.85, "environment-repair")


@pytest.mark.parametrize(("command", "text"), LOCAL)
def test_a_server_of_the_machine_itself_is_no_network(command: str, text: str) -> None:
    assert failed(command, text).condition == "not-recovered"


def test_an_address_that_the_line_names_counts_before_those_of_the_command() -> None:
    script = "pip install flask && flask run --host 0.0.0.0"
    text = "ReadTimeoutError: HTTPSConnectionPool(host='pypi.org', port=443): Read timed out."
    assert failed(script, text).condition == "environment-fault"
    assert failed(script, "curl: (28) Operation timed out after 5 milliseconds").condition == "not-recovered"


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "db.example.org"])
def test_a_refused_connection_is_the_environments_wherever(address: str) -> None:
    text = f"psql: error: connection to server at {address}, port 5432 failed: Connection refused"
    assert failed(f"psql -h {address}", text).condition == "environment-fault"


@pytest.mark.parametrize("host", ["localhost", "pypi.org"])
def test_a_run_that_ended_so_was_ended_by_the_environment_wherever(host: str) -> None:
    ended = f"requests.exceptions.ReadTimeout: HTTPConnectionPool(host='{host}', port=80): Read timed out."
    found = route(line(bash("ls", "a", 0), status="error", termination=ended), shipped())
    assert found.condition == "environment-fault"


@pytest.mark.parametrize("text", HARNESS)
def test_what_a_wrapper_could_not_fetch_is_the_harnesss(text: str) -> None:
    assert failed("fetch it", text)[:4] == ("action-rejected", "tool", 0.85, "harness")


@pytest.mark.parametrize(
    "text",
    [
        "Error: curl is not installed",
        "Error: UnknownHostExceptionHandler is not defined",
        "Error: the docker daemonset is not running",
        "TypeError: Failed to fetch",
        "Error: all attempts to solve it failed",
    ],
)
def test_words_that_only_sound_like_a_network_are_none(text: str) -> None:
    assert failed("run it", text).condition == "not-recovered"
