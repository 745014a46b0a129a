/** Params without a default, in an order that is not the alphabetical one. */
import { dag } from "tradewind";
import { z } from "zod";

const params = z.object({
  region: z.enum(["eu", "us"]).default("eu"),
  day: z.iso.date().describe("Which day is loaded."),
  options: z.object({ retries: z.number().int().default(2), all: z.boolean().default(false) }).prefault({}),
  by: z.string().optional(),
});

export default dag("needy", { params }, (d) => {
  d.task("load", (_, ctx) => ({ day: ctx.params.day }));
});
