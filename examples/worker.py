#!/usr/bin/env python3
"""A worker of Foldplane over REST, with nothing but Python's standard library.

    foldplane serve &
    python3 examples/worker.py web

It asks for a port, serves on it, renews its lease three times as often as it has to, registers anew when it was
forgotten, and says goodbye when it is stopped.
"""

import http.server
import json
import os
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request

SERVER = os.environ.get("FOLDPLANE_SERVER", "http://127.0.0.1:18080")
TTL_MS = 6000


def ask(method, path, body):
    """The answer to a request, or the problem document that came instead."""
    request = urllib.request.Request(
        SERVER + path,
        method=method,
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.server.name}\n".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Worker:
    def __init__(self, service, name):
        self.path = f"/v1/services/{service}/workers/{name}"
        self.name = name
        self.host = os.environ.get("FOLDPLANE_HOST", socket.gethostname())
        self.port = None
        self.fence = None

    def register(self):
        """Asks for a port the first time, and for the same one after that."""
        port = {"name": "http"} if self.port is None else {"name": "http", "number": self.port}
        wish = {"host": self.host, "ttl_ms": TTL_MS, "readiness": "reported", "ports": [port]}
        status, answer = ask("PUT", self.path, wish)
        if status not in (200, 201):
            sys.exit(f"{answer['detail']} ({answer['code']}): {answer['hint']}")
        address, self.port = answer["ports"]["http"].rsplit(":", 1)
        self.port = int(self.port)
        self.fence = {"host": self.host, "generation": answer["generation"]}
        return address

    def tell(self, what):
        return ask("POST", f"{self.path}/{what}", self.fence)

    def renew_until(self, stopped):
        while not stopped.wait(TTL_MS / 3000):
            try:
                status, _ = self.tell("renew")
                if status == 404:
                    self.register()
                    self.tell("ready")
            except OSError as error:
                # The control plane is away. It waits for us when it comes back, and we go on serving.
                print(f"no control plane: {error}", file=sys.stderr)


def main():
    service = sys.argv[1] if len(sys.argv) > 1 else "web"
    worker = Worker(service, f"py-{os.getpid()}")
    address = worker.register()
    server = http.server.ThreadingHTTPServer((address, worker.port), Hello)
    server.name = worker.name
    worker.tell("ready")
    print(f"serving on {address}:{worker.port}", flush=True)

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    worker.renew_until(stopped)
    ask("DELETE", worker.path, worker.fence)
    server.shutdown()


if __name__ == "__main__":
    main()
