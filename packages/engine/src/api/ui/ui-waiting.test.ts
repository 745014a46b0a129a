/** Current waits by kind and signal, and the list of one group. */
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addTrigger, addWait } from "../../../test/api/waits.ts";

let tw: Installation;

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 10, minute));

beforeAll(async () => {
  tw = await Installation.open();
  for (const dag of ["etl", "shop"])
    await tw.addDag(
      manifestOf(
        dag,
        ["a", "b", "c", "d", "e"].map((taskId) => ({ taskId })),
      ),
    );
  const etl = await tw.addRun("etl", { runId: "r1" });
  const shop = await tw.addRun("shop", { runId: "s1" });
  const signal = (key: string, where: unknown = null) =>
    addTrigger(tw, {
      kind: "tradewind.signal",
      args: { namespace: "default", key, where: where as null },
    });
  const waits = [
    [etl, "a", await signal("order.*"), "tradewind.signal", 5, null],
    [etl, "b", await signal("order.paid"), "tradewind.signal", 3, at(50)],
    // Another trigger for the same signal, with a value that cannot be text in PostgreSQL.
    [etl, "c", await signal("order.paid", { name: "ä" }), "tradewind.signal", 2, at(40)],
    [shop, "d", await signal("order.paid", { name: "\u0000" }), "tradewind.signal", 4, null],
    [shop, "e", await addTrigger(tw, { kind: "file", args: { path: "/x" } }), "file", 1, null],
  ] as const;
  for (const [dagRunId, taskId, triggerId, kind, minute, timeoutAt] of waits)
    await addWait(tw, {
      ...{ dagRunId, taskId, triggerId, kind, since: at(minute) },
      ...(timeoutAt && { timeoutAt }),
    });
});

async function ask(query: string) {
  const response = await tw.call("GET", `/ui/waiting/groups${query}`);
  expect([response.statusCode, response.body]).toEqual([200, expect.anything()]);
  return response.json();
}

test("groups waits by kind and signal, the largest group first", async () => {
  const group = (kind: string, signal: string | null, waiting: number, since: Date, until: Date | null) => ({
    kind,
    signal,
    waiting,
    since: since.toISOString(),
    timeout_at: until?.toISOString() ?? null,
  });
  expect(await ask("")).toEqual({
    groups: [
      group("tradewind.signal", "default/order.paid", 2, at(2), at(40)),
      group("file", null, 1, at(1), null),
      group("tradewind.signal", null, 1, at(4), null),
      group("tradewind.signal", "default/order.*", 1, at(5), null),
    ],
    total_groups: 4,
    total_waiting: 5,
    is_partial: false,
  });
  const { groups } = await ask("?dag_id=shop");
  expect(groups.map(({ since }: { since: string }) => since)).toEqual(
    [at(1), at(4)].map((time) => time.toISOString()),
  );
});

test("lists the waits of one signal, and takes a pattern literally", async () => {
  const found = async (query: string) => {
    const { total_entries, waiting } = (await tw.call("GET", `/waiting?${query}`)).json();
    return [total_entries, ...waiting.map(({ task_id }: { task_id: string }) => task_id)];
  };
  expect(await found("signal=default/order.paid")).toEqual([2, "c", "b"]);
  expect(await found("signal=default/order.*")).toEqual([1, "a"]);
  expect(await found("signal=default/order.paid&dag_id=shop")).toEqual([0]);
});
