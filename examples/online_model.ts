/**
 * Batch and streaming in one DAG. The stream of clicks reports its progress; each report starts a training, and a good model
 * replaces the serving one while the run continues. The run ends with the signal that the site is closed:
 *
 *   tradewind dags trigger online_model && tradewind signals send site.closed
 *
 * The clicks may also come from another program, in any language: jobs/clicks.mjs sends over gRPC.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { dag, restart, signal, start } from "tradewind";
import { z } from "zod";

const watermark = signal("clicks.watermark", z.object({ hour: z.number() }));
const validated = signal("model.validated", z.object({ hour: z.number(), accuracy: z.number() }));
const closed = signal("site.closed");

const params = z.object({ clicks: z.enum(["task", "outside"]).default("task") });

export default dag("online_model", { tags: ["example"], owner: "ml", params, stop: closed }, (d) => {
  // Runs until it is stopped. Started again when it fails.
  d.task("clicks", { lifetime: "streaming" }, async (_, ctx) => {
    if (ctx.params.clicks === "outside") return;
    for (let hour = 0; !ctx.abort.aborted; hour++) {
      await ctx.send(watermark, { hour });
      await sleep(2_000, null, { signal: ctx.abort }).catch(() => {});
    }
  });

  // Runs once for every watermark.
  const model = d.task("train", { on: [start(watermark)], retries: 1 }, (_, ctx) => {
    // A manual start has no watermark: it trains the first hour.
    const hour = ctx.startSignals.find((heard) => watermark.is(heard))?.value.hour ?? 0;
    const accuracy = 0.91 + hour / 1_000;
    ctx.log.info("trained", { hour, accuracy });
    return { hour, accuracy };
  });

  // Runs again for every model. The signal is stored in the transaction of the success, or not at all.
  d.task("validate", { inputs: { model } }, async ({ model }, ctx) => {
    if (model.accuracy > 0.9) await ctx.send(validated, model, { onSuccess: true });
  });

  // Starts with the previous model, and restarts with each validated one.
  d.task("serve", { lifetime: "streaming", grace: "5s", on: [restart(validated)] }, async (_, ctx) => {
    ctx.log.info("serving", { model: ctx.tryNumber });
    await new Promise((resolve) => ctx.abort.addEventListener("abort", resolve, { once: true }));
    return `served model ${ctx.tryNumber}`;
  });
});
