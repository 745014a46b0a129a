/** The dates of timetables, listed in pieces in real child processes, of classes that behave and classes that do not. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DueCall, DueFacts } from "@tradewind/sdk/program";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { artefactHash } from "../code/artefact-hash.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { MAX_LISTED_DATES, TimetableDates } from "./timetable-dates.ts";
import { pieceOf } from "./timetable-runner/piece.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FROM = Date.UTC(2024, 0, 10);

describe("a piece", () => {
  const at = (instant: number): DueFacts => ({
    logicalDate: instant,
    intervalStart: instant,
    intervalEnd: instant,
    runAfter: instant + 2,
  });
  const wish = fc.record({
    steps: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 60 }),
    from: fc.integer({ min: 0, max: 60 }),
    until: fc.integer({ min: 0, max: 300 }),
    limit: fc.integer({ min: 1, max: 20 }),
  });

  it("of pieces equals the whole list, with each call as at its time", async () => {
    await fc.assert(
      fc.asyncProperty(wish, async ({ steps, from, until, limit }) => {
        const dates = steps.map((_, n) => steps.slice(0, n + 1).reduce((sum, step) => sum + step, 0));
        const due = async ({ last, now }: DueCall) => {
          const before = last?.logicalDate ?? 0;
          expect(now).toBe(last === null ? 0 : before + 2);
          const next = dates.find((date) => date > before);
          return { ok: true as const, due: next === undefined ? null : at(next) };
        };
        const found: number[] = [];
        let call: DueCall = { last: null, now: 0, start: null, end: null, catchup: true, slackMs: 0 };
        for (;;) {
          const outcome = await pieceOf(due, call, { from, until, limit, forMs: 60_000 });
          if (!outcome.ok) throw new Error("no piece");
          const { runs, last } = outcome.piece;
          expect(runs.length).toBeLessThanOrEqual(limit);
          found.push(...runs.map((run) => run.logicalDate));
          if (last === null) break;
          call = { ...call, last, now: Math.max(call.now, last.runAfter) };
        }
        expect(found).toEqual(dates.filter((date) => date >= from && date + 2 <= until));
      }),
      { numRuns: 100 },
    );
  });
});

describe("in a child process", () => {
  let folder: string;
  let dates: TimetableDates;
  let limited: TimetableDates;
  const bundles = new Map<string, string>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tradewind-dates-"));
    const cache = new BundleCache(folder, async (hash) => ({
      code: bundles.get(hash) ?? "",
      sharedChunk: null,
    }));
    dates = new TimetableDates({ bundles: cache, answerMs: 2_000, listMs: 120_000 });
    limited = new TimetableDates({ bundles: cache, listMs: 500 });
  });
  afterAll(async () => {
    await dates.stop();
    await limited.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** The dates of a DAG "x" whose program answers with this code. */
  async function listed(
    code: string,
    wish: Partial<Parameters<TimetableDates["list"]>[0]> = {},
    client = dates,
  ) {
    const program = `{ protocol: 1, describe: () => ({ dagId: "x" }), async due(call) { ${AT} ${code} } }`;
    const text = `export default { [Symbol.for("tradewind.program")]: ${program} };\n`;
    const hash = artefactHash(text);
    bundles.set(hash, text);
    const range = { from: FROM, to: FROM + 3 * DAY, until: FROM + 9 * DAY, start: null, last: null };
    return client.list({ dagId: "x", bundleHash: hash, ...range, ...wish });
  }
  const AT = `const at = (t) => ({ ok: true, due: call.end !== null && t > call.end ? null : { logicalDate: t, intervalStart: t, intervalEnd: t, runAfter: t } });
    const last = call.last?.logicalDate ?? call.start ?? call.now;`;
  const HOURLY = `return at((Math.floor(last / ${HOUR}) + 1) * ${HOUR});`;

  it("includes both ends for any start of the class, and no run that is not due yet", async () => {
    const found = await listed(HOURLY);
    expect(found).toHaveLength(73);
    expect([found[0]?.logicalDate, found.at(-1)?.logicalDate]).toEqual([FROM, FROM + 3 * DAY]);
    const due = await listed(HOURLY, { until: FROM + 90 * 60_000 });
    expect(due.map((run) => run.logicalDate - FROM)).toEqual([0, HOUR]);
    // In many pieces.
    expect(await listed(HOURLY, { to: FROM + 100 * DAY, until: FROM + 200 * DAY })).toHaveLength(2_401);
  });

  it("continues from the last run of the schedule, or from the DAG's start", async () => {
    const every36 = `return at(last + ${36 * HOUR});`;
    const since = FROM - 7 * HOUR;
    const run = { logicalDate: since, intervalStart: since, intervalEnd: since };
    const hours = (runs: readonly DueFacts[]) => runs.map((each) => (each.logicalDate - FROM) / HOUR);
    expect(hours(await listed(every36, { last: run }))).toEqual([29, 65]);
    expect(hours(await listed(every36, { start: since }))).toEqual([29, 65]);
  });

  it("fails with a code if the class throws, exits, hangs, never ends or returns dates out of order", async () => {
    const expected = {
      "throw Object.assign(new Error('no'), { code: 'NO_CALENDAR' });": "NO_CALENDAR",
      "process.exit(4);": "TIMETABLE_CRASHED",
      "for (;;);": "TIMETABLE_TIMEOUT",
      [`return at(Math.max(last + 1, ${FROM}) - (last > ${FROM} + 20 ? 50 : 0));`]: "TIMETABLE_NONSENSE",
    };
    for (const [code, error] of Object.entries(expected))
      await expect(listed(code), code).rejects.toMatchObject({ code: error });
    await expect(listed("return at(last + 1);", {}, limited)).rejects.toMatchObject({
      code: "TIMETABLE_SLOW",
    });
    const endless = await listed(`return at(Math.max(last + 1, ${FROM}));`);
    expect(endless).toHaveLength(MAX_LISTED_DATES + 1);
  });
});
