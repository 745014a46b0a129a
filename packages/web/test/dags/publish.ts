/** Asks a person twice: with a form, and only for a decision. */
import { dag, once } from "tradewind";
import { z } from "zod";

const form = z.object({
  region: z.enum(["eu", "us"]).describe("The site of the report"),
  copies: z.number().int().min(1).max(9).default(1),
});

export default dag("publish", { schedule: once() }, (d) => {
  d.approval("target", { title: "Where is the report published?", form, timeout: "4h" });
  d.approval("publish", {
    title: "Publish the report?",
    message: "The numbers are **checked**: `1200` rows.\n\n- no gaps\n- <b>no</b> duplicates",
  });
});
