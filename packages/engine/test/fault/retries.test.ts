/** Owners that die while a group, or the run itself, waits for its next try: nothing is lost, and no try runs twice. */
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { testDatabase } from "../support/test-database.ts";
import { FaultInstallation } from "./installation.ts";

const LEASE = [1_500, 400, 400] as const;

test("the next owner starts the next try of a group, and of the run, once", async () => {
  const { url } = await testDatabase();
  const installation = await FaultInstallation.open(url);
  const ledger = `${installation.root}/told`;
  writeFileSync(ledger, "");
  await installation.publishFiles({
    "again.ts": `
      import { dag } from "tradewind";
      import { appendFileSync } from "node:fs";
      const tell = (...words) => appendFileSync(${JSON.stringify(ledger)}, words.join(" ") + "\\n");
      const told = (ctx) => tell(ctx.groupId ?? "run", ctx.event, ctx.tryNumber);
      const on = { onSuccess: told, onFailure: told };
      export default dag("again", { runRetries: 1, runRetryDelay: "2s", ...on }, (d) => {
        const g = d.group("g", { retries: 1, retryDelay: "2s", onRetry: told, ...on }, (g) => {
          const a = g.task("a", (_, ctx) => tell("a", ctx.tryNumber));
          g.task("b", { after: a }, (_, ctx) => {
            tell("b", ctx.tryNumber);
            if (ctx.tryNumber < 3) throw new Error("not yet");
          });
        });
        d.task("out", { after: g }, (_, ctx) => tell("out", ctx.tryNumber));
      });
    `,
  });
  const start = (name: string) => installation.start(installation.place(name, { lease: LEASE }));
  const until = async (sql: string) => {
    while ((await installation.sql(sql)).length === 0) await sleep(20);
  };

  const first = await start("first");
  await installation.trigger("again", "run");
  await until("SELECT 1 FROM run_group WHERE state = 'waiting' OR try_number > 1");
  await first.kill();
  const second = await start("second");
  await until("SELECT 1 FROM dag_run WHERE retry_at IS NOT NULL OR try_number > 1");
  await second.kill();
  await start("third");
  await until("SELECT 1 FROM dag_run WHERE state = 'success'");
  await until("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM callback)");

  expect(await installation.sql("SELECT try_number, retry_at FROM dag_run")).toEqual([
    { try_number: 2, retry_at: null },
  ]);
  expect(await installation.sql("SELECT state, try_number FROM run_group")).toEqual([
    { state: "success", try_number: 3 },
  ]);
  const lines = readFileSync(ledger, "utf8").split("\n").filter(Boolean);
  const isTask = (line: string) => /^(a|b|out) /.test(line);
  // The group runs again as a whole, also in the next try of the run.
  expect(lines.filter(isTask)).toEqual(["a 1", "b 1", "a 2", "b 2", "a 3", "b 3", "out 1"]);
  // At least once each: the owner may have died before it recorded the call.
  const told = lines.filter((line) => !isTask(line));
  expect([...new Set(told)].sort()).toEqual(["g failure 2", "g retry 1", "g success 3", "run success 2"]);
});
