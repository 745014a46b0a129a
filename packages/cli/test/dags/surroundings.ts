import { dag } from "tradewind";

/** Returns the environment of a task. */
export default dag("surroundings", {}, (d) => {
  d.task("look", async (_, ctx) => {
    const { host, port } = await ctx.connection("db");
    const region = await ctx.variable("region");
    return { region, host, port, databaseUrl: process.env.DATABASE_URL ?? null };
  });
});
