/** `why` for pools and limits over all runs: their size and the tasks that hold them. */
import type { Connection } from "../../store/database/database.ts";
import { type PoolHolder, readPoolHolders } from "../../store/why/pool-holders.ts";
import { readSlots, type SlotCount } from "../../store/why/why-facts.ts";
import { instanceName } from "../server/documents.ts";
import type { Finding } from "./why-deferred.ts";

const SHOWN = 5;

/** @param needs The number of slots per pool; names that begin with "@" are limits of the engine. */
export async function poolReasons(
  connection: Connection,
  needs: ReadonlyMap<string, number>,
): Promise<Finding[]> {
  const pools = await readSlots(connection, [...needs.keys()]);
  const found: Finding[] = [];
  for (const [name, slots] of needs) {
    const pool = pools.find((each) => each.name === name);
    if (pool === undefined) {
      const message = `Pool "${name}" does not exist. Create it with: tradewind pools set ${name} <slots>`;
      found.push({ code: "POOL_MISSING", message, until: null });
    } else if (pool.slots >= 0 && slots > pool.slots) {
      const message = `Pool "${name}" has ${counted(pool.slots, "slot")} in total, and the task needs ${slots}: it can never run. Enlarge the pool with: tradewind pools set ${name} ${slots}, or give the task fewer poolSlots.`;
      found.push({ code: "POOL_TOO_SMALL", message, until: null });
    } else if (pool.slots >= 0 && pool.occupied + slots > pool.slots) {
      found.push(
        name.startsWith("@") ? await limitReached(connection, pool) : await full(connection, pool, slots),
      );
    }
  }
  return found;
}

async function full(connection: Connection, pool: SlotCount, needed: number): Promise<Finding> {
  const { name, occupied, slots } = pool;
  const taken = `Pool "${name}" is full: ${occupied} of ${slots} slots are taken, the task needs ${needed}.`;
  const wait = `It starts when enough slots are free. To start it now, enlarge the pool with: tradewind pools set ${name} ${occupied + needed}`;
  return {
    code: "POOL_FULL",
    message: `${taken}${await heldBy(connection, name, ({ slots: own }) => counted(own, "slot"))} ${wait}`,
    until: null,
  };
}

async function limitReached(connection: Connection, { name, occupied, slots }: SlotCount): Promise<Finding> {
  const isOfDag = name.startsWith("@@");
  const reached = `The limit of this ${isOfDag ? "DAG" : "task"} over all runs is reached: ${occupied} of ${slots} instances are active.`;
  const remedy = `It starts when one of them ends. To allow more, raise ${isOfDag ? "maxActiveTasksPerDag of the DAG" : "maxActivePerDag of the task"}.`;
  return {
    code: "MAX_ACTIVE_PER_DAG",
    message: `${reached}${await heldBy(connection, name, () => null)} ${remedy}`,
    until: null,
  };
}

async function heldBy(
  connection: Connection,
  pool: string,
  share: (holder: PoolHolder) => string | null,
): Promise<string> {
  const { holders, total } = await readPoolHolders(connection, pool, SHOWN);
  if (holders.length === 0) return "";
  const each = holders.map((holder) => {
    const facts = [holder.state, share(holder)].filter((fact) => fact !== null).join(", ");
    return `${instanceName(holder)} of run "${holder.run_id}" of DAG "${holder.dag_id}" (${facts})`;
  });
  const more = total - holders.length;
  return ` Held by: ${each.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
