import { dag } from "tradewind";

/** Tells what a task can see. */
export default dag("surroundings", {}, (d) => {
  d.task("look", async (_, ctx) => {
    const { host, port } = await ctx.connection("db");
    const region = await ctx.variable("region");
    return { region, host, port, databaseUrl: process.env.DATABASE_URL ?? null };
  });
});
