/** Output of the commands while a transaction that has sent signals stays open. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { drive, drivenManifest, STARTED_AT } from "../../engine/test/api/driven.ts";
import { Installation } from "../../engine/test/api/installation.ts";
import { runCaptured } from "./support/captured-host.ts";

let server: Installation;
let env: NodeJS.ProcessEnv;
let sending: Promise<void>;
const release = Promise.withResolvers<void>();
const tw = (...argv: string[]) => runCaptured(argv, { env });

async function addDriven(runId: string): Promise<number> {
  const id = await server.addRun("online", { runId, startedAt: STARTED_AT });
  await drive(server, id, () => {});
  return id;
}

beforeAll(async () => {
  server = await Installation.open();
  const url = await server.app.listen({ host: "127.0.0.1", port: 0 });
  env = { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token, DATABASE_URL: server.database.url };
  await server.addDag(drivenManifest("online"));
  const [run] = await Promise.all(["r1", "r2"].map(addDriven));
  await server.addInstance(run!, "serve", { state: "success" });
  const began = Promise.withResolvers<void>();
  sending = server.database.transaction(async (tx) => {
    await tx.script("INSERT INTO signal (namespace, key, value, sender) VALUES ('default', 'a', '1', 'x')");
    began.resolve();
    await release.promise;
  });
  await began.promise;
  while (!(await tw("signals", "conditions")).stderr.includes("Signals are blocked")) await sleep(20);
});

afterAll(async () => {
  release.resolve();
  await sending;
});

const REMEDY = /SELECT pg_terminate_backend\(\d+\)/;

it("names the blocking session once in `signals conditions` for any number of runs", async () => {
  const { stderr } = await tw("signals", "conditions");
  expect(stderr.match(/Signals are blocked: session \d+/g)).toHaveLength(1);
  expect(stderr).toMatch(REMEDY);
});

it("names the session in `tasks why`, also for an ended task that reruns on signals", async () => {
  const { stdout } = await tw("tasks", "why", "online", "r1", "serve");
  expect(stdout).toMatch(/signals are blocked: session \d+ .*last query INSERT INTO signal/);
  expect(stdout).toMatch(REMEDY);
  expect(stdout).toContain("[SIGNALS_HELD]");
});

it("warns in `doctor`, with the remedy", async () => {
  const checks = JSON.parse((await tw("doctor", "--json")).stdout) as Record<string, string>[];
  expect(checks.filter(({ name }) => name === "signals")).toEqual([
    {
      ...{ name: "signals", result: "warn" },
      says: expect.stringMatching(
        /^signals are blocked: session \d+ .* has sent signals and not committed, for \d+ s$/,
      ),
      remedy: expect.stringMatching(REMEDY),
    },
  ]);
});
