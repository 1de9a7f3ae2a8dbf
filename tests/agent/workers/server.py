"""A small worker: says its process id, then answers on PORT. Options change how it behaves."""

import http.server
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time


def notify(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
        reports.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])


if "--stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    # A worker that ends in order, with a code that tells so.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
if "--fork" in sys.argv:
    helper = subprocess.Popen(["sleep", "600"])
    print(helper.pid, flush=True)
    sys.exit(0)
print(os.getpid(), flush=True)
if "--deaf" in sys.argv:
    time.sleep(600)
if "--fail-once" in sys.argv:
    marker = sys.argv[sys.argv.index("--fail-once") + 1]
    if not os.path.exists(marker):
        open(marker, "w").close()
        sys.exit(3)
if "--greedy" in sys.argv:
    # 64 MiB until SIGUSR1.
    hoard = [bytearray(b"x" * (64 << 20))]
    signal.signal(signal.SIGUSR1, lambda *_: hoard.clear())
time.sleep(0.2)


class SocketServer(socketserver.UnixStreamServer):
    """At a path, which a predecessor may have left behind."""

    def server_bind(self):
        if os.path.exists(self.server_address):
            os.unlink(self.server_address)
        super().server_bind()

    def get_request(self):
        return super().get_request()[0], ("a socket", 0)


place = os.environ["PORT"]
if place.startswith("/"):
    server = SocketServer(place, http.server.SimpleHTTPRequestHandler)
else:
    server = http.server.HTTPServer(
        ("127.0.0.1", int(place)), http.server.SimpleHTTPRequestHandler
    )
if "--notify" in sys.argv:
    signal.signal(signal.SIGUSR1, lambda *_: notify("X_FOLDPLANE_UNREADY=the database is away"))
    signal.signal(signal.SIGUSR2, lambda *_: notify("READY=1\nSTATUS=back"))
    signal.signal(signal.SIGHUP, lambda *_: notify("STOPPING=1"))
    notify("READY=1\nSTATUS=up")
if "--relay" in sys.argv:
    # Says whatever it is told to say.
    relay = lambda: [notify(line.strip()) for line in sys.stdin]
    threading.Thread(target=relay, daemon=True).start()
server.serve_forever()
