/** Logs: many lines, with levels, colours and an odd one; and one that continues after a signal. */
import { dag, signal } from "tradewind";
import { z } from "zod";

const go = signal("lines.go", z.object({ text: z.string() }));

export default dag("lines", { params: z.object({ lines: z.number().default(5_000) }) }, (d) => {
  d.task("write", (_, ctx) => {
    for (let line = 0; line < ctx.params.lines; line += 1) {
      if (line % 1_000 === 500) ctx.log.error(`row ${line} is broken`);
      else ctx.log.info(`row ${line}`, { part: line % 7 });
    }
    console.log("\u001b[32mgreen\u001b[0m");
    for (const percent of [10, 60, 100]) process.stdout.write(`\rcopied ${percent} %`);
    process.stdout.write("\n");
    ctx.log.info(`long ${"x".repeat(5_000)} end`);
  });
});

export const talk = dag("talk", (d) => {
  d.task("listen", async (_, ctx) => {
    ctx.log.info("before the signal");
    const { value } = await ctx.until("go", go, { timeout: "4h" });
    ctx.log.info(`after the signal: ${value.text}`);
  });
});

export const grouped = dag("grouped", (d) => {
  d.task("load", (_, ctx) => {
    for (const file of ["a.csv", "b.csv"]) {
      ctx.log.info(`::group::Load ${file}`);
      for (let part = 0; part < 9; part += 1) ctx.log.info(`${file} part ${part}`);
      if (file === "b.csv") {
        console.error("b.csv has no header");
        ctx.log.error("b.csv is skipped");
      }
      console.log("::endgroup::");
    }
  });
});
