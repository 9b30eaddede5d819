// Asks for orders by the client that is made from the proto file, in JSON and in protobuf, and
// prints what it got as JSON: node out/call.js http://127.0.0.1:8080
import { toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

import { type Order, OrderSchema, OrderService } from "./orders_pb.js";

const url = process.argv[2];
if (url === undefined) {
  throw new Error("which URL?");
}
for (const useBinaryFormat of [false, true]) {
  const client = createClient(OrderService, createConnectTransport({ baseUrl: url, useBinaryFormat }));
  const order: Order = await client.findOrder({ id: 7 });
  console.log(JSON.stringify(toJson(OrderSchema, order)));
  try {
    await client.findOrder({ id: -7 });
    throw new Error("there is an order -7");
  } catch (err) {
    if (ConnectError.from(err).code !== Code.NotFound) {
      throw err;
    }
  }
}
