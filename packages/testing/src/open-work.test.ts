import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { dag } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "./index.ts";

const open = (what: string) => ({
  state: "failed",
  error: { code: "TW_WORK_LEFT_OPEN", message: expect.stringContaining(what) },
});

async function load(): Promise<void> {
  await sleep(400);
}

test("fails a task that returns while its work is open", async () => {
  const forgetful = dag("forgetful", (d) => {
    d.task("load", () => void load());
    d.task("allowed", { openWork: "allow" }, () => void load());
    d.task("tries", { retries: 1 }, (_, ctx) => (ctx.tryNumber === 1 ? void load() : load()));
    d.task("innocent", () => load());
    d.task("tells", { onSuccess: () => void load() }, () => {});
  });
  const run = await runDag(forgetful);
  expect(run.task("load")).toMatchObject(open(`timer started at ${import.meta.filename}:13`));
  expect(run.states).toMatchObject({ allowed: "success", innocent: "success", tells: "success" });
  expect(run.task("tries")).toMatchObject({ state: "success", tries: 2 });
  expect(run.logs["tells"]).toMatchObject([{ message: expect.stringContaining("still open: timer") }]);
});

test("attributes a shared connection to the task that wrote to it last", async () => {
  const { promise: connected, resolve } = Promise.withResolvers<Socket>();
  await using server = createServer((socket) => {
    resolve(socket);
    socket.on("data", (data) => void (String(data) === "ping" && socket.write("pong")));
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { connect } = await import("node:net");
  const client = connect((server.address() as { port: number }).port, "127.0.0.1");
  const answer = () => new Promise((done) => client.once("data", done));
  const ping = dag("shared", (d) => {
    const first = d.task("first", async () => {
      client.write("ping");
      await answer();
    });
    const second = d.task("second", { after: first }, () => void client.write("nothing"));
    d.task("third", { after: second, rule: "allDone" }, () => {});
  });
  const run = await runDag(ping);
  expect(run.states).toMatchObject({ first: "success", third: "success" });
  expect(run.task("second")).toMatchObject(open("that waits for an answer"));
  client.destroy();
  (await connected).destroy();
});
