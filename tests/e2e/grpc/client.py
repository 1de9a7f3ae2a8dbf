"""A proxyless gRPC client that calls one service for ever, and prints who answered, a line a call."""

import sys
import time

import grpc

# Two calls follow each other so closely that no worker's end can fall between them unseen.
PAUSE_SECONDS = 0.01

channel = grpc.insecure_channel(f"xds:///{sys.argv[1]}")
ask = channel.unary_unary("/test.Names/Ask")
while True:
    try:
        print(ask(b"", timeout=10, wait_for_ready=True).decode(), flush=True)
    except grpc.RpcError as error:
        print(f"failed: {error.code().name} {error.details()}", flush=True)
    time.sleep(PAUSE_SECONDS)
