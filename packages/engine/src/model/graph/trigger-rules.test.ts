import type { TriggerRule } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { ALL_RULES } from "../../../test/reference/random-dag.ts";
import { type Counters, emptyCounters, judge, type Verdict } from "./trigger-rules.ts";

/**
 * Upstream states: s success, k skipped, f failed, u upstream_failed, r removed, . unfinished; capitals: of a setup. Derived
 * line by line from the meaning of the rules, not from the code.
 */
const TABLE = `
  allSuccess               s:run ss:run s.:wait .:wait sr:run r:run f:upstream_failed u:upstream_failed k:skipped
  allSuccess               .f:upstream_failed .u:upstream_failed .k:skipped kf:upstream_failed ku:upstream_failed sk:skipped r.:wait
  allFailed                f:run u:run fu:run fr:run r:run .:wait f.:wait s:skipped k:skipped .s:skipped fk:skipped fs:skipped
  allDone                  s:run f:run k:run u:run r:run skfur:run .:wait skfur.:wait
  allDoneMinOneSuccess     s:run sf:run su:run sr:run .:wait s.:wait f.:wait f:upstream_failed fu:upstream_failed r:upstream_failed
  allDoneMinOneSuccess     k:skipped sk:skipped .k:skipped fk:skipped
  allDoneSetupSuccess      s:run f:run k:run S:run Sf:run SF:run SK:run .:wait S.:wait F.:wait K.:wait
  allDoneSetupSuccess      F:upstream_failed U:upstream_failed Fs:upstream_failed FK:upstream_failed R:upstream_failed K:skipped KK:skipped Ks:skipped Kf:skipped
  oneSuccess               s:run s.:run sf:run sk:run .:wait f.:wait k.:wait k:skipped kk:skipped f:upstream_failed u:upstream_failed kf:upstream_failed r:upstream_failed kr:upstream_failed
  oneFailed                f:run u:run f.:run sf:run ku.:run .:wait s.:wait k.:wait s:skipped k:skipped r:skipped skr:skipped
  oneDone                  s:run f:run s.:run f.:run ku.s:run .:wait k.:wait u.:wait k:skipped u:skipped ku:skipped r:skipped
  noneFailed               s:run k:run sk:run r:run skr:run .:wait s.:wait k.:wait f:upstream_failed u:upstream_failed .f:upstream_failed ku.:upstream_failed
  noneFailedMinOneSuccess  s:run sk:run sr:run .:wait s.:wait k.:wait k:skipped kk:skipped f:upstream_failed .f:upstream_failed .u:upstream_failed skf:upstream_failed r:upstream_failed kr:upstream_failed
  noneSkipped              s:run f:run u:run r:run sfur:run .:wait s.:wait f.:wait k:skipped .k:skipped sk:skipped fk:skipped
  allSkipped               k:run kk:run .:wait k.:wait s:skipped f:skipped u:skipped .s:skipped kf:skipped ku.:skipped kr:wait r:wait
  always                   .:run f:run s:run k.:run u:run F:run
`;

const cases = TABLE.trim()
  .split("\n")
  .flatMap((line) => {
    const [rule, ...entries] = line.trim().split(/\s+/);
    return entries.map((entry) => [rule as TriggerRule, ...(entry.split(":") as [string, Verdict])] as const);
  });

describe("each rule", () => {
  test.each(cases)("%s with upstream %s: %s", (rule, states, verdict) => {
    expect(judge(rule, count(states))).toBe(verdict);
  });

  test("is in the table", () => {
    expect(new Set(cases.map(([rule]) => rule))).toEqual(new Set(ALL_RULES));
  });

  test("lets a task without upstream run", () => {
    for (const [rule] of cases) expect(judge(rule, emptyCounters())).toBe("run");
  });
});

function count(states: string): Counters {
  const counters = emptyCounters();
  for (const state of states) {
    const isSetup = state !== state.toLowerCase();
    counters.total++;
    if (isSetup) counters.setupTotal++;
    const field = { s: "success", k: "skipped", f: "failed", u: "upstreamFailed", r: "removed" } as const;
    const kind = field[state.toLowerCase() as keyof typeof field];
    if (!kind) continue;
    counters[kind]++;
    if (!isSetup) continue;
    if (kind === "success") counters.setupSuccess++;
    if (kind === "skipped") counters.setupSkipped++;
    if (kind === "failed" || kind === "upstreamFailed") counters.setupFailed++;
  }
  return counters;
}
