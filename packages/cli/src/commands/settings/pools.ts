import { Command } from "@commander-js/extra-typings";
import { changeOrCreate } from "../../client/change-or-create.ts";
import { path } from "../../client/client.ts";
import type { Pool } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import type { Session } from "../../session.ts";
import { POOLS } from "../../settings/kinds.ts";
import { addTransferCommands } from "./transfer.ts";

export function command(session: Session) {
  const pools = new Command("pools")
    .description("manage pools: limits on concurrent tasks across DAGs")
    .addHelpText("after", examples("tradewind pools list", "tradewind pools set gpu 2"));

  pools
    .command("list")
    .description("list pools and their usage")
    .addHelpText("after", examples("tradewind pools list"))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Pool>({
        path: "/pools",
        key: "pools",
        what: "cannot list the pools",
        limit,
      });
      await session.printList(listed, COLUMNS, "No pools.");
    });

  pools
    .command("show")
    .description("show a pool")
    .addHelpText("after", examples("tradewind pools show gpu"))
    .argument("<name>")
    .action(async (name) => {
      const pool = await session.client.get<Pool>(path`/pools/${name}`, {
        what: `cannot show the pool ${name}`,
      });
      await session.printObject(pool, [
        ["name", pool.name],
        ["slots", slots(pool.slots)],
        ["open", slots(pool.open_slots)],
        ["running", String(pool.running_slots)],
        ["queued", String(pool.queued_slots)],
        ["scheduled", String(pool.scheduled_slots)],
        ["deferred", String(pool.deferred_slots)],
        ["counts deferred", pool.include_deferred ? "yes" : "no"],
        ["description", pool.description],
      ]);
    });

  pools
    .command("set")
    .description("create or change a pool")
    .addHelpText(
      "after",
      examples("tradewind pools set gpu 2 --description 'two GPUs'", "tradewind pools set wide -1"),
    )
    .argument("<name>")
    .argument("<slots>", "number of slots; -1 = no limit", wholeNumber(-1))
    .option("--description <text>")
    .option("--include-deferred", "deferred tasks keep their slots")
    .option("--no-include-deferred", "deferred tasks release their slots")
    .action(async (name, size, options) => {
      const change = {
        slots: size,
        description: options.description,
        include_deferred: options.includeDeferred,
      };
      const what = `cannot set the pool ${name}`;
      const { pool, made } = await changeOrCreate(
        async () => ({
          pool: await session.client.patch<Pool>(path`/pools/${name}`, { what, body: change }),
          made: "changed",
        }),
        async () => ({
          pool: await session.client.post<Pool>("/pools", {
            what,
            body: { ...change, name },
            idempotent: true,
          }),
          made: "created",
        }),
      );
      await session.printDone(pool, `Pool ${name} ${made}: ${slots(size)} slots.`);
    });

  pools
    .command("delete")
    .description("delete a pool")
    .addHelpText("after", examples("tradewind pools delete gpu"))
    .argument("<name>")
    .action(async (name) => {
      await session.confirm(`Delete pool ${name}?`);
      await session.client.delete(path`/pools/${name}`, { what: `cannot delete the pool ${name}` });
      await session.printDone({ name, deleted: true }, `Pool ${name} deleted.`);
    });

  addTransferCommands(pools, session, POOLS);
  return pools;
}

const COLUMNS: readonly Column<Pool>[] = [
  { title: "NAME", value: (pool) => pool.name },
  { title: "SLOTS", value: (pool) => slots(pool.slots), align: "right" },
  { title: "OPEN", value: (pool) => slots(pool.open_slots), align: "right" },
  { title: "RUNNING", value: (pool) => String(pool.running_slots), align: "right" },
  { title: "QUEUED", value: (pool) => String(pool.queued_slots), align: "right" },
  { title: "DEFERRED", value: (pool) => String(pool.deferred_slots), align: "right", optional: true },
  { title: "DESCRIPTION", value: (pool) => pool.description ?? "", flexible: true, optional: true },
];

function slots(count: number): string {
  return count < 0 ? "unlimited" : String(count);
}
