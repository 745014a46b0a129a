/**
 * Waiting without a worker. The DAG submits a job once, waits for its end, and publishes the model after a quiet
 * period; while it waits, the run has no process. List the waits with:
 *
 *   tradewind dags trigger training && tradewind waiting
 */
import { dag, PollTrigger, TimeDeltaTrigger } from "tradewind";

/** Simulates a training service: a job ends two seconds after it was submitted. */
class JobDone extends PollTrigger<{ job: string; submittedAt: number }, { accuracy: number }> {
  static id = "example.job_done";
  static interval = "500ms";

  async poll() {
    return Date.now() - this.args.submittedAt > 2_000 ? { accuracy: 0.93 } : undefined;
  }
}

export default dag("training", { tags: ["example"], owner: "ml" }, (d) => {
  // On every resume the function begins at the top; named steps are not repeated.
  const model = d.task("train", { retries: 1, timeout: "10m" }, async (_, ctx) => {
    const { job, submittedAt } = await ctx.step("submit", () => {
      ctx.log.info("submitted");
      return { job: `job of ${ctx.run.id}`, submittedAt: Date.now() };
    });
    const { accuracy } = await ctx.until("done", new JobDone({ job, submittedAt }), { timeout: "5m" });
    ctx.log.info("trained", { job, accuracy });
    return { job, accuracy };
  });

  // A trigger in the graph needs no worker.
  const quiet = d.trigger("quiet_time", new TimeDeltaTrigger({ delta: "2s" }), { after: model });
  d.task("publish", { inputs: { model }, after: quiet }, ({ model }, ctx) => {
    ctx.log.info("published", { accuracy: model.accuracy });
  });
});
