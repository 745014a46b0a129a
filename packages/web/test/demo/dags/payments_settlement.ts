/** Fails since its second run, always in the same task. */
import { setTimeout as sleep } from "node:timers/promises";
import { cron, dag } from "tradewind";

export default dag(
  "payments_settlement",
  {
    schedule: cron("*/2 * * * *"),
    tags: ["payments", "critical"],
    owner: "payments",
    description: "Settles card payments",
  },
  (d) => {
    const fetched = d.task("fetch_ledger", async (_, ctx) => {
      ctx.log.info("fetched", { entries: 4_812 });
      await sleep(150);
      return 4_812;
    });
    const reconciled = d.task(
      "reconcile_ledger",
      { inputs: { fetched }, retries: 2, retryDelay: "500ms" },
      async ({ fetched }, ctx) => {
        ctx.log.info("comparing", { entries: fetched });
        await sleep(250);
        const missing = Number(ctx.run.id.at(-3)) || 14;
        throw new LedgerMismatch(
          `${missing} entries without counterpart in batch ${ctx.run.id.slice(0, 24)}, expected 0`,
        );
      },
    );
    d.task("settle", { inputs: { reconciled } }, () => "settled");
    d.task("report", { after: reconciled, rule: "allDone" }, () => "reported");
  },
);

class LedgerMismatch extends Error {
  override readonly name = "LedgerMismatch";
}
