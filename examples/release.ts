/**
 * A person decides in the middle of a run: approve or reject, then fill in a form. Nothing runs while it waits.
 *
 *   tradewind dags trigger release && tradewind approvals list
 *   tradewind approvals answer <id> --approve
 *   tradewind approvals answer <id> --answer '{"region":"us"}'
 */
import { dag } from "tradewind";
import { z } from "zod";

const Target = z.object({
  region: z.enum(["eu", "us"]).describe("Where the model is published"),
  share: z.number().int().min(1).max(100).default(10).describe("Percentage of the requests that it answers"),
});

export default dag("release", { tags: ["example"], owner: "ml" }, (d) => {
  const score = d.task("score", () => 0.93);
  // A rejection skips the tasks after it.
  const ok = d.approval("approve", {
    inputs: { score },
    title: ({ score }) => `Publish the model with score ${score}?`,
    timeout: "2d",
  });
  const target = d.approval("target", {
    after: ok,
    title: "Where, and for whom?",
    form: Target,
    timeout: "1d",
    onTimeout: { answer: { region: "eu" } },
  });
  d.task("publish", { inputs: { ok, target } }, ({ ok, target }, ctx) => {
    ctx.log.info("published", { ...target, by: ok.by });
    return `${target.share} % in ${target.region}`;
  });
});
