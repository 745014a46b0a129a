import { dag, type TaskContext } from "tradewind";

async function warehouse(ctx: TaskContext) {
  return await ctx.connection("warehouse");
}

/** What the engine refuses: through the author's code, and after it. */
export const refused = dag("refused", {}, (d) => {
  d.task("asks", async (_, ctx) => (await warehouse(ctx)).id);
  d.task("returns", () => ({ at: 1n }) as unknown as string);
});

/** A task that ends its process while another one works. */
export const exits = dag("exits", {}, (d) => {
  const first = d.task("first", () => 1);
  d.task("works", { after: first }, () => new Promise<void>((resolve) => setTimeout(resolve, 60_000)));
  d.task("leaves", { after: first }, () => process.exit(0));
});
