"""A gRPC peer for the xDS tests: `serve NAME...` answers with its name, `ask` calls what it is told to on stdin."""

import sys
from concurrent import futures

import grpc

METHOD = "/foldplane.test.Echo/Say"


def serve(names):
    servers = []
    for name in names:
        answer = name.encode()
        handler = grpc.unary_unary_rpc_method_handler(lambda request, context, answer=answer: answer)
        service = grpc.method_handlers_generic_handler("foldplane.test.Echo", {"Say": handler})
        server = grpc.server(futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers((service,))
        print(server.add_insecure_port("127.0.0.1:0"), flush=True)
        server.start()
        servers.append(server)
    sys.stdin.read()


def ask():
    channels = {}
    for line in sys.stdin:
        service = line.strip()
        if service not in channels:
            channels[service] = grpc.insecure_channel("xds:///" + service)
        try:
            answer = channels[service].unary_unary(METHOD)(b"", timeout=20, wait_for_ready=False)
            print(answer.decode(), flush=True)
        except grpc.RpcError as error:
            print("error", error.code().name, error.details().replace("\n", " "), flush=True)


if sys.argv[1] == "serve":
    serve(sys.argv[2:])
else:
    ask()
