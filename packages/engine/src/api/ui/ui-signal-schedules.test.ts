/** Schedules on several signals, with what has arrived: the state is the one that the triggerer stores. */
import type { DagManifest, SignalCondition } from "@tradewind/sdk/manifest";
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { silentLogger } from "../../service/logger.ts";
import { setSignalSchedules } from "../../store/signal/signal-schedules-publish.ts";
import { SignalSchedules } from "../../trigger/schedule/signal-schedules.ts";

let tw: Installation;
let triggerer: SignalSchedules;

const leaf = (key: string): SignalCondition => ({
  ...{ kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false },
});
const on = (dagId: string, when: SignalCondition): DagManifest => ({
  ...manifestOf(dagId, [{ taskId: "t" }]),
  schedule: { kind: "signal", when, route: null },
});

beforeAll(async () => {
  tw = await Installation.open();
  const dags = [
    on("join", { kind: "all", of: [leaf("stock.*"), leaf("prices")] }),
    on("single", leaf("prices")),
    on("either", { kind: "any", of: [leaf("a"), leaf("b")] }),
  ];
  for (const dag of dags) await tw.addDag(dag);
  await setSignalSchedules(tw.database, dags);
  triggerer = new SignalSchedules({ database: tw.database, logger: silentLogger, onRuns: () => undefined });
  await triggerer.read(performance.now() + 10_000);
});

async function send(key: string, value: unknown): Promise<number> {
  const answer = await tw.call("POST", "/signals", { key, value });
  expect(answer.statusCode).toBe(201);
  expect(await triggerer.read(performance.now() + 10_000)).toMatchObject({ isComplete: true, isHeld: false });
  return answer.json().signals[0].version;
}

const shown = async () => (await tw.call("GET", "/ui/signals/schedules")).json();
const join = { dag_id: "join", is_paused: false, condition: "all(stock.*, prices)" };
const part = (text: string, version: number | null) => ({ text, is_met: version !== null, version });

test("shows which signals have arrived since the last run, and which are missing", async () => {
  const none = {
    schedules: [
      { ...join, missing: "stock.* and prices", parts: [part("stock.*", null), part("prices", null)] },
    ],
    more: false,
  };
  expect(await shown()).toEqual(none);
  const version = await send("stock.eu", { rows: 3 });
  expect(await shown()).toEqual({
    schedules: [{ ...join, missing: "prices", parts: [part("stock.*", version), part("prices", null)] }],
    more: false,
  });
  await send("prices", 1);
  expect(await shown()).toEqual(none);
});

test("does not read a state with large values", async () => {
  await send("stock.us", "x".repeat(60_000));
  const { schedules } = await shown();
  expect(schedules[0]).toMatchObject({
    missing: null,
    parts: [
      { is_met: null, version: null },
      { is_met: null, version: null },
    ],
  });
});
