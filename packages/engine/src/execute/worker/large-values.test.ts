/** Large inputs and outputs of tasks on a worker: through the API, and across its failures. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WorkerRig } from "../../../test/support/worker-rig.ts";
import { SCRATCH } from "../../output/large-outputs.ts";
import { adhoc } from "../../store/database/database.ts";

const MB = 1024 * 1024;
const STORE = "POST /execution/v1/outputs";
const isRead = (what: string) => /^GET \/execution\/v1\/outputs\/\d+$/.test(what);

const DAGS = `
  import { dag } from "tradewind";
  const rows = (n) => Array.from({ length: n }, (_, i) => ({ i, text: "äé€😀".repeat(5_000) }));

  export const chain = dag("chain", {}, (d) => {
    const big = d.task("big", () => rows(60));
    d.task("read", { inputs: { big }, retries: 0 }, ({ big }) => [big.length, big[59].i, big[0].text === big[59].text]);
    d.task("asked", { after: [big], retries: 0 }, async (_, ctx) => (await ctx.output("big")).length);
  });

  export const maps = dag("maps", {}, (d) => {
    const list = d.task("list", () => rows(12));
    const each = d.map("each", { over: list }, (row) => row.i === 3 ? row.text.repeat(4) : row.i);
    d.task("all", { inputs: { each } }, ({ each }) => [each.length, each[3].length, each[11]]);
  });

  export const huge = dag("huge", {}, (d) => {
    d.task("out", { retries: 0 }, () => "x".repeat(9_000_000));
  });
`;

describe("large values of tasks on a worker", () => {
  let on: WorkerRig;
  let home: string;

  beforeAll(async () => {
    on = await WorkerRig.open({
      TRADEWIND_OUTPUT_INLINE_LIMIT: "65536",
      TRADEWIND_OUTPUT_LIMIT: `${8 * MB}`,
    });
    await on.rig.publish({ "large.ts": DAGS });
    ({ home } = await on.worker());
  }, 60_000);
  beforeEach(() => {
    on.proxy.requests.length = 0;
    on.proxy.faults.length = 0;
    on.proxy.fault = () => null;
  });

  const stored = () => join(on.rig.root, "home", "outputs");
  const objects = (run: number) =>
    on.rig.db.rows<{ id: number; key: string; bytes: number; task_id: string }>(
      adhoc("SELECT * FROM output_object WHERE dag_run_id = $1 ORDER BY task_id"),
      [run],
    );
  const isWhole = async (run: number) => {
    expect(await on.rig.ended(run)).toBe("success");
    expect(await on.rig.output(run, "read")).toEqual([60, 59, true]);
    expect(await on.rig.output(run, "asked")).toBe(60);
    const [object, ...others] = await objects(run);
    expect(others).toEqual([]);
    expect(object?.bytes).toBeGreaterThan(3 * MB);
    expect(JSON.parse(await readFile(join(stored(), object!.key), "utf8"))).toHaveLength(60);
  };

  it("are stored by the API and read by later tasks, without files left on the worker", async () => {
    await isWhole(await on.rig.trigger("chain"));
    expect(await readdir(join(home, "outputs", SCRATCH), { recursive: true })).toEqual([
      expect.stringMatching(/^\d+-[0-9a-f-]+$/),
    ]);
  });

  it("can be mapped by their items, and collected", async () => {
    const run = await on.rig.trigger("maps");
    expect(await on.rig.ended(run)).toBe("success");
    expect(await on.rig.output(run, "all")).toEqual([12, 4 * 25_000, 11]);
    // The mapped tasks read their items only.
    expect(on.proxy.requests.filter(isRead)).toHaveLength(13);
  });

  it("are stored once if the answer to the upload is lost", async () => {
    on.proxy.fault = (what) => (what === STORE && on.proxy.faults.length < 2 ? { kind: "lose" } : null);
    await isWhole(await on.rig.trigger("chain"));
    expect(on.proxy.count(STORE)).toBe(3);
  });

  it("are uploaded again if the connection breaks in the middle", async () => {
    on.proxy.fault = (what) =>
      what === STORE && on.proxy.faults.length < 2 ? { kind: "cut-request", bytes: MB } : null;
    await isWhole(await on.rig.trigger("chain"));
    expect(on.proxy.faults).toEqual([STORE, STORE]);
    expect(await readdir(join(stored(), SCRATCH), { recursive: true })).toEqual([
      expect.stringMatching(/^\d+-[0-9a-f-]+$/),
    ]);
  });

  it("are uploaded after a restart of the API", async () => {
    let restarted: Promise<void> | null = null;
    on.proxy.fault = (what) => {
      if (what !== STORE || restarted !== null) return null;
      restarted = on.stopApi().then(() => on.startApi());
      return { kind: "cut-request", bytes: MB };
    };
    const run = await on.rig.trigger("chain");
    await isWhole(run);
    expect(restarted).not.toBeNull();
  });

  it("are read on from where the connection broke, several times", async () => {
    // In the middle of a character, too: the texts have characters of two, three and four bytes.
    const cuts = [MB + 1, MB + 2, MB + 3, 0, 1];
    on.proxy.fault = (what) => {
      const bytes = isRead(what) ? cuts.shift() : undefined;
      return bytes === undefined ? null : { kind: "cut-answer", bytes };
    };
    await isWhole(await on.rig.trigger("chain"));
    expect(cuts).toEqual([]);
  });

  it("fail their task if they exceed the limit of the server", async () => {
    const run = await on.rig.trigger("huge");
    expect(await on.rig.ended(run)).toBe("failed");
    expect((await on.rig.tasks(run)).out?.reason).toMatch(
      /^TW_OUTPUT_TOO_LARGE: .* at most 8388608 are allowed/,
    );
    expect(on.proxy.count(STORE)).toBe(0);
  });
});
