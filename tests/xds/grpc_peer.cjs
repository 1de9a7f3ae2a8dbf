// A gRPC client for the xDS tests: `ask` calls the services that it is told on stdin, and prints what they answer.
"use strict";

const grpc = require("@grpc/grpc-js");
require("@grpc/grpc-js-xds").register();

const METHOD = "/foldplane.test.Echo/Say";
const PATIENCE_MS = 20_000;
const plain = (bytes) => bytes;
const clients = new Map();

function ask(service) {
  if (!clients.has(service)) {
    clients.set(service, new grpc.Client("xds:///" + service, grpc.credentials.createInsecure()));
  }
  const options = { deadline: Date.now() + PATIENCE_MS, waitForReady: false };
  const call = (done) =>
    clients.get(service).makeUnaryRequest(METHOD, plain, plain, Buffer.alloc(0), new grpc.Metadata(), options, done);
  return new Promise((resolve) =>
    call((error, answer) =>
      resolve(error ? `error ${grpc.status[error.code]} ${error.details.replaceAll("\n", " ")}` : answer.toString()),
    ),
  );
}

async function main() {
  for await (const line of require("node:readline").createInterface({ input: process.stdin })) {
    console.log(await ask(line.trim()));
  }
  process.exit(0);
}

main();
