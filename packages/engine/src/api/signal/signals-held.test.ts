/** `why` and `…/conditions` name an open transaction that has sent signals. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drive, drivenManifest, STARTED_AT } from "../../../test/api/driven.ts";
import { Installation } from "../../../test/api/installation.ts";
import { addTrigger, addWait } from "../../../test/api/waits.ts";
import { adhoc } from "../../store/database/database.ts";
import { sendSignals } from "../../store/signal/signals.ts";

let tw: Installation;
let pid: number;
const release = Promise.withResolvers<void>();
let sending: Promise<void>;

const conditionsOf = async (runId: string) =>
  (await tw.call("GET", `/dags/online/dagRuns/${runId}/conditions`)).json();
const why = async (runId: string, taskId: string) =>
  (await tw.call("GET", `/dags/online/dagRuns/${runId}/taskInstances/${taskId}/why`)).json().reasons as {
    code: string;
    message: string;
  }[];

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(drivenManifest("online"));
  await tw.addJob("scheduler");
  const open = await tw.addRun("online", { runId: "open", startedAt: STARTED_AT });
  for (const [taskId, state] of Object.entries({ train: "pending", serve: "success", load: "pending" }))
    await tw.addInstance(open, taskId, { state });
  await drive(tw, open, () => {});
  await addWait(tw, {
    ...{ dagRunId: open, taskId: "report", kind: "tradewind.signal" },
    triggerId: await addTrigger(tw, { kind: "tradewind.signal" }),
  });
  const closed = await tw.addRun("online", { runId: "closed", startedAt: STARTED_AT });
  await tw.addInstance(closed, "train", { state: "pending" });
  await drive(tw, closed, (each) => each.close("ada"));

  const began = Promise.withResolvers<number>();
  sending = tw.database.transaction(async (tx) => {
    await sendSignals(tx, [{ namespace: "default", key: "a", value: 1, sender: "test" }]);
    began.resolve((await tx.one<{ pid: number }>(adhoc("SELECT pg_backend_pid() AS pid")))!.pid);
    await release.promise;
  });
  pid = await began.promise;
  while ((await conditionsOf("open")).held_by.length === 0) await sleep(20);
});

afterAll(async () => {
  release.resolve();
  await sending;
});

test("names the transaction in conditions of runs that receive signals", async () => {
  expect((await conditionsOf("open")).held_by).toEqual([
    {
      ...{ pid, gid: null, application: "tradewind", state: "idle in transaction" },
      ...{ database: expect.any(String), user: expect.any(String), query: expect.any(String) },
      age_seconds: expect.any(Number),
      message: expect.stringMatching(
        new RegExp(`^Signals are blocked: session ${pid} .* SELECT pg_terminate_backend\\(${pid}\\)$`),
      ),
    },
  ]);
  expect((await conditionsOf("closed")).held_by).toEqual([]);
  const { runs } = (await tw.call("GET", "/signals/conditions")).json();
  expect(
    Object.fromEntries(
      runs.map((run: { dag_run_id: string; held_by: { pid: number }[] }) => [
        run.dag_run_id,
        run.held_by.map((each) => each.pid),
      ]),
    ),
  ).toEqual({ open: [pid], closed: [] });
});

test("names the transaction in `why` of tasks that signals start, stop or wake", async () => {
  const codes = async (runId: string, taskId: string) => (await why(runId, taskId)).map(({ code }) => code);
  expect(await codes("open", "train")).toEqual(["SIGNAL", "UPSTREAM", "SIGNALS_HELD"]);
  expect(await codes("open", "serve")).toEqual(["FINISHED", "SIGNAL", "SIGNALS_HELD"]);
  expect((await codes("open", "report")).at(-1)).toBe("SIGNALS_HELD");
  expect((await why("open", "train")).at(-1)!.message).toContain(`session ${pid} (application tradewind, `);
  expect(await codes("open", "load")).toEqual(["READY"]);
  expect(await codes("closed", "train")).not.toContain("SIGNALS_HELD");
});
