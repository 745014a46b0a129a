/**
 * A streaming job outside of Tradewind, as it could be written in any language: it uses only the .proto file of the service.
 * Sends a watermark for each hour of clicks, numbered, so that a repeated send is stored once.
 *
 *   node examples/jobs/clicks.mjs 127.0.0.1:8081 <token> 24
 */
import { join } from "node:path";
import { credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [address = "127.0.0.1:8081", token = "", hours = "24"] = process.argv.slice(2);
const proto = join(import.meta.dirname, "../../packages/engine/src/signal/grpc/signals.proto");
const { Signals } = loadPackageDefinition(loadSync(proto, { keepCase: true })).tradewind.signals.v1;

const client = new Signals(address, credentials.createInsecure());
const metadata = new Metadata();
metadata.set("authorization", `Bearer ${token}`);

const job = `clicks-${process.pid}`;
for (let hour = 1; hour <= Number(hours); hour++) {
  const signal = { key: "clicks.watermark", value: JSON.stringify({ hour }), client: job, sequence: hour };
  await send({ signals: [signal] });
  console.log(`hour ${hour} is complete`);
}
client.close();

/** Repeats the call while its outcome is unknown. */
async function send(request) {
  for (;;) {
    const error = await new Promise((resolve) => {
      client.Send(request, metadata, { deadline: Date.now() + 10_000 }, resolve);
    });
    if (error === null) return;
    const isUnknown = error.code === 4 || error.code === 14;
    if (!isUnknown) throw error;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
