/** Waits for a file of a partner and for a confirmation, each without a worker. */
import { cron, dag, FileTrigger, signal } from "tradewind";
import { z } from "zod";

const landed = signal("partner.file_landed", z.object({ partner: z.string(), rows: z.number() }));

export default dag(
  "partner_ingest",
  {
    schedule: cron("*/5 * * * *"),
    tags: ["ingest"],
    owner: "partners",
    description: "Loads what partners deliver",
  },
  (d) => {
    const file = d.task("wait_for_file", async (_, ctx) => {
      const { path } = await ctx.until("file", new FileTrigger({ path: `/tmp/partner-${ctx.run.id}.csv` }), {
        timeout: "2h",
      });
      return path;
    });
    const confirmed = d.task("wait_for_confirmation", async (_, ctx) => {
      const { value } = await ctx.until("confirmed", landed, { timeout: "4h" });
      return value;
    });
    d.task("load", { inputs: { file, confirmed } }, ({ file }) => `loaded ${file}`);
  },
);
