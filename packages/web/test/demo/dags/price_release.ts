/** New prices need the decision of a person, and the answer to a form. */
import { cron, dag } from "tradewind";
import { z } from "zod";

export default dag(
  "price_release",
  {
    schedule: cron("*/10 * * * *"),
    tags: ["pricing"],
    owner: "pricing",
    description: "Computes prices and releases them once a person has approved",
  },
  (d) => {
    const computed = d.task("compute_prices", () => ({ products: 1_284, largest: "+12.4 %" }));
    const released = d.approval("release", {
      inputs: { computed },
      title: ({ computed }) => `Release ${computed.products} new prices?`,
      message: ({ computed }, ctx) =>
        `Run \`${ctx.run.id}\` has computed **${computed.products} prices**.\n\n- largest change: ${computed.largest}\n- no product is below its cost`,
      timeout: "2d",
    });
    const target = d.approval("markets", {
      inputs: { computed },
      title: "In which market do the prices begin?",
      form: z.object({
        market: z.enum(["de", "fr", "it"]).describe("The others follow after a day."),
        share: z
          .number()
          .int()
          .min(1)
          .max(100)
          .default(10)
          .describe("Per cent of the customers who see them."),
        announce: z.boolean().default(false),
      }),
      assignees: ["admin", "ann"],
      timeout: "4h",
      onTimeout: { answer: { market: "de" } },
    });
    d.task("roll_out", { inputs: { target }, after: released }, ({ target }) => `begins in ${target.market}`);
  },
);
