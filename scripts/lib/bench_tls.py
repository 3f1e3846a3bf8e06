"""The rows about TLS of the group "heavy and modes": handshakes, and what an idle connection holds.

Connections are of TLS 1.3, with the ciphers that the libraries choose, a certificate of RSA with 2048 bits and none of the client.
What a handshake costs is the server's CPU from a connection's accept() to its close(), one PING in between."""

import atexit
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

from bench_heavy import Row, Stock, cpu_us, fail
from bench_modes import close_all
from bench_server import CHECKOUT, Server, free_port

PING = b"*1\r\n$4\r\nPING\r\n"


class Certificates:
    """Those of tests/tls/make-certificates, in a directory of their own; made once."""

    directory = None

    @classmethod
    def path(cls, name):
        if cls.directory is None:
            cls.directory = tempfile.mkdtemp(prefix="latchkey-bench-")
            atexit.register(shutil.rmtree, cls.directory, ignore_errors=True)
            subprocess.run([CHECKOUT / "tests" / "tls" / "make-certificates", cls.directory], check=True)
        return os.path.join(cls.directory, name)


@contextlib.contextmanager
def speaking_tls(server, *options):
    """A process of its own, with a port for TLS, as `tls_port`."""
    fresh = Server(server.name, server.program, server.core)
    fresh.tls_port = free_port()
    fresh.start(options=("--tls-port", str(fresh.tls_port), "--tls-cert-file", Certificates.path("redis.crt"), "--tls-key-file",
                         Certificates.path("redis.key"), "--tls-ca-cert-file", Certificates.path("ca.crt"), "--tls-auth-clients",
                         "no", *options))
    try:
        yield fresh
    finally:
        fresh.stop()


def client_side():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.load_verify_locations(Certificates.path("ca.crt"))
    return context


def connect(server, context, session=None):
    """A connection that has been answered once, after which the client has the tickets of its session."""
    link = context.wrap_socket(socket.create_connection(("127.0.0.1", server.tls_port)), session=session)
    link.sendall(PING)
    if (reply := link.recv(64)) != b"+PONG\r\n":
        fail(server, reply, ["PING"])
    return link


def handshakes(count, resumed):
    """CPU of one connection; `resumed`: each takes up the session of the one before."""
    def measure(server):
        with speaking_tls(server) as fresh:
            context = client_side()
            session = None
            for number in range(count + 1):
                if number == 1:
                    started = cpu_us(fresh)  # the first one made what is made once
                with connect(fresh, context, session) as link:
                    if number > 0 and link.session_reused != resumed:
                        fail(fresh, f"session_reused is {link.session_reused}", ["a handshake"])
                    session = link.session if resumed else None
            return (cpu_us(fresh) - started) / count

    return measure


def idle_connections(count):
    """Resident bytes of an idle connection."""
    def measure(server):
        with speaking_tls(server, "--maxclients", str(count + 100)) as fresh:
            context = client_side()
            connect(fresh, context).close()
            before = fresh.anonymous_bytes()
            links = [connect(fresh, context) for _ in range(count)]
            time.sleep(8)  # buffers of clients that are idle are given back
            grown = (fresh.anonymous_bytes() - before) / count
            close_all(links)
            return grown

    return measure


NOTHING = Stock("nothing, for TLS")
TLS_ROWS = [
    Row("TLS handshake", "TLS", NOTHING, handshakes(500, resumed=False), warm=False),
    Row("TLS handshake, session resumed", "TLS", NOTHING, handshakes(500, resumed=True), warm=False),
    Row("bytes, idle TLS client of 1,000", "TLS", NOTHING, idle_connections(1000), unit="bytes", warm=False),
]
