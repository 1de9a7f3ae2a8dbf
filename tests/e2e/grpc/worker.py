"""A gRPC worker that answers every call with its name."""

import os
import signal
from concurrent import futures

import grpc


def ask(_request, _context):
    return os.environ["FOLDPLANE_WORKER"].encode()


server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
methods = {"Ask": grpc.unary_unary_rpc_method_handler(ask)}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Names", methods)])
port = os.environ["PORT"]
server.add_insecure_port(
    f"unix:{port}" if port.startswith("/") else f"{os.environ['HOST']}:{port}"
)
server.start()
signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=1))
server.wait_for_termination()
