/** Runs the first example of docs/guides/signals.md, and the Node client of docs/guides/signal-service.md. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { dag, restart, signal } from "@tradewind/sdk";
import { type RunnableDag, runDag } from "@tradewind/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../packages/engine/src/service/logger.ts";
import { GrpcSignalServer } from "../../packages/engine/src/signal/grpc/server.ts";
import { signalSubject } from "../../packages/engine/test/support/signal-subject.ts";
import { blocksOf, ROOT } from "./guide.ts";

let folder: string;
let online: RunnableDag;

beforeAll(async () => {
  // Inside the repository, where the packages are found.
  await mkdir(join(ROOT, ".cache"), { recursive: true });
  folder = await mkdtemp(join(ROOT, ".cache/signals-guide-"));
  const [block] = blocksOf("docs/guides/signals.md").filter(({ title }) => title === "dags/online_model.ts");
  const file = join(folder, "online_model.ts");
  await writeFile(file, block!.text);
  online = ((await import(pathToFileURL(file).href)) as { default: RunnableDag }).default;
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const hour = (value: string, after: "1h" | "2h" | "3h") => ({
  key: "clicks.watermark",
  value: { hour: value },
  after,
});

it("trains once for each hour, and knows which", async () => {
  const run = await runDag(online, {
    now: "2027-01-04T08:00:00Z",
    signals: [
      hour("2027-01-04T08", "1h"),
      hour("2027-01-04T09", "1h"),
      hour("2027-01-04T10", "2h"),
      { key: "site.closed", after: "3h" },
    ],
  });
  expect(run.task("train").history.map(({ output }) => output)).toEqual([
    "trained with 2027-01-04T08",
    "trained with 2027-01-04T09",
    "trained with 2027-01-04T10",
  ]);
  expect(run.task("serve").history[0]?.reason).toContain("model.validated");
});

it("closes without a false watermark, and with what comes after the stream", async () => {
  const run = await runDag(online, {
    now: "2027-01-04T08:00:00Z",
    signals: [
      { key: "site.mode", value: "maintenance", after: "1h" },
      { key: "site.closed", after: "3h" },
    ],
  });
  expect(run.closedBy).toBe("site.closed");
  expect(run.signals).toEqual([]);
  expect(run.states).toMatchObject({ clicks: "success", train: "skipped", archive: "success" });
  expect(run.task("report").history[0]?.endedMs).toBe(3_600_000);
});

it("is right about streams that return by themselves: they have succeeded, and rest until something starts them", async () => {
  const brief = dag("brief", { stop: signal("over") }, (d) => {
    const stream = d.task(
      "stream",
      { lifetime: "streaming", on: [restart(signal("again"))] },
      (_, ctx) => ctx.tryNumber,
    );
    d.task("next", { inputs: { stream } }, ({ stream }) => stream);
  });
  const run = await runDag(brief, {
    signals: [
      { key: "again", after: "1h" },
      { key: "over", after: "2h" },
    ],
  });
  const tries = run.task("stream").history.map(({ endedMs, output, state }) => [endedMs, state, output]);
  expect(tries).toEqual([
    [0, "success", 1],
    [3_600_000, "success", 2],
  ]);
  expect(run.task("next").history.map(({ output }) => output)).toEqual([1, 2]);
});

describe("the client in Node", () => {
  let subject: Awaited<ReturnType<typeof signalSubject>>;
  let server: GrpcSignalServer;
  let program: string;
  let isRevoked = false;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    subject = await signalSubject();
    server = new GrpcSignalServer({
      service: subject.service,
      authenticate: async (token) => (token === "tw_good" && !isRevoked ? "ada" : undefined),
      host: "127.0.0.1",
      port: 0,
      logger: silentLogger,
    });
    await server.start();
    const [block] = blocksOf("docs/guides/signal-service.md").filter(({ title }) => title === "deploy.mjs");
    program = block!.text.replace("127.0.0.1:8081", server.address);
  });

  afterAll(async () => {
    for (const child of children) child.kill();
    await server.stop();
    await subject.close();
  });

  /** Rejects never: what it said, and its exit code when it has ended. */
  async function start(text: string, token: string) {
    const file = join(folder, `deploy-${children.length}.mjs`);
    await writeFile(file, text);
    const child = spawn(process.execPath, ["--conditions=source", file], {
      env: { PATH: process.env.PATH, TRADEWIND_TOKEN: token },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    let said = "";
    const heard = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        said += String(chunk);
        if (said.includes("model.new")) heard.resolve();
      });
    const ended = once(child, "close").then(([code]) => ({ code: code as number, said }));
    return { heard: heard.promise, ended };
  }

  it("sends and hears, and ends when it is not let in, or not any more", async () => {
    await subject.service.send([{ key: "model.new", value: { score: 1 } }]);
    const refused = { code: 1, said: expect.stringContaining("UNAUTHENTICATED") };
    const stranger = await start(program, "tw_wrong");
    expect(await stranger.ended).toEqual(refused);
    const good = await start(program, "tw_good");
    // One that does not look whether it is over: it must not go on as if nothing were.
    const heedless = await start(
      program.replace("await listening.done;", "").replace('"deployer"', '"heedless"'),
      "tw_good",
    );
    await Promise.all([good.heard, heedless.heard]);
    expect((await subject.service.list({ key: "clicks.*" })).signals).toHaveLength(2);
    isRevoked = true;
    expect(await good.ended).toEqual(refused);
    expect(await heedless.ended).toEqual(refused);
  }, 60_000);
});
