import { dag, restart, signal, start } from "tradewind";

const hour = signal<number>("clicks.hour");
const model = signal<number>("model.ready");

/** A stream, a task started by each of its signals, and a second stream restarted by that task's result. */
export default dag("driven", { stop: signal("site.closed") }, (d) => {
  d.task("clicks", { lifetime: "streaming" }, async (_, ctx) => {
    for (const value of [7, 8]) await ctx.send(hour, value);
    await stopped(ctx.abort);
  });
  d.task("train", { on: [start(hour)] }, async (_, ctx) => {
    await ctx.send(model, ctx.tryNumber, { onSuccess: true });
    return ctx.tryNumber;
  });
  d.task("serve", { lifetime: "streaming", on: [restart(model)] }, (_, ctx) => stopped(ctx.abort));
  d.task("report", { every: "10m" }, () => "written");
});

function stopped(abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (abort.aborted) resolve();
    abort.addEventListener("abort", () => resolve(), { once: true });
  });
}
