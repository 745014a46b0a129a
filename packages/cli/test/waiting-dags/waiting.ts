import { dag, FileSensor, PollTrigger, TimeDeltaTrigger, TriggerDagRunOperator } from "tradewind";

let polls = 0;

class JobDone extends PollTrigger<{ job: string }, { rows: number }> {
  static id = "acme.job_done";
  static interval = "10ms";
  poll() {
    return ++polls < 3 ? undefined : { rows: polls };
  }
}

/** Waits for a time, for its own trigger, and for a file given on the command line. */
export default dag("waiting", {}, (d) => {
  d.task("job", async (_, ctx) => {
    await ctx.until("pause", new TimeDeltaTrigger({ delta: "300ms" }));
    return (await ctx.until("done", new JobDone({ job: "7" }), { timeout: "1h" })).rows;
  });
  const file = d.operator("file", new FileSensor({ path: "/nowhere/a.csv" }));
  d.operator("report", new TriggerDagRunOperator({ dagId: "report", runId: "r1" }), { after: file });
  d.task("flaky", { retries: 1, retryDelay: "200ms" }, (_, ctx) => {
    if (ctx.tryNumber === 1) throw new Error("not yet");
  });
});
