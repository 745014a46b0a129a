import { dag, type TaskContext } from "tradewind";

async function warehouse(ctx: TaskContext) {
  return await ctx.connection("warehouse");
}

/** Errors of the engine, thrown through user code and after it. */
export const refused = dag("refused", {}, (d) => {
  d.task("asks", async (_, ctx) => (await warehouse(ctx)).id);
  d.task("returns", () => ({ at: 1n }) as unknown as string);
});

/** Tasks that would exit or crash their process, beside tasks that succeed. */
export const crashes = dag("crashes", {}, (d) => {
  const first = d.task("first", () => 1);
  d.task("works", { after: first }, () => new Promise<void>((resolve) => setTimeout(resolve, 300)));
  d.task("leaves", { after: first }, () => process.exit(0));
  d.task("rejects", { after: first }, async () => {
    Promise.reject(new Error("not awaited"));
    await new Promise<void>((resolve) => setTimeout(resolve, 100));
  });
  d.task("throws", { after: first }, async () => {
    setTimeout(() => {
      throw new Error("from a timer");
    }, 10);
    await new Promise<void>((resolve) => setTimeout(resolve, 100));
  });
  d.task("forgets", { after: first }, () => {
    setTimeout(() => {}, 1_000);
  });
  d.task("hangs", { after: first }, () => new Promise<void>(() => {}));
});

export const lacks = dag("lacks", { env: { MODE: "batch" } }, (d) => {
  d.task("look", () => {
    const { MODE, SHOP_KEY, SHOP_REGION } = process.env;
    if (SHOP_KEY === undefined) throw new Error(`SHOP_KEY is not set in ${SHOP_REGION}, in ${MODE}`);
  });
});
