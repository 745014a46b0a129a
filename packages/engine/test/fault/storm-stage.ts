/** The seed and the length of a fault test, and the installation that it disturbs. */
import { pgProxy } from "../support/pg-proxy.ts";
import { crashablePostgres } from "../support/private-postgres.ts";
import { FaultInstallation } from "./installation.ts";

export const SEED = Number(process.env.TRADEWIND_FAULT_SEED ?? Math.floor(Math.random() * 10_000));
export const SCALE = Number(process.env.TRADEWIND_FAULT_SCALE ?? 1);

/** A database that can crash, a proxy that can cut connections to it, and an installation. */
export async function stormStage() {
  console.log(`fault test: TRADEWIND_FAULT_SEED=${SEED} TRADEWIND_FAULT_SCALE=${SCALE}`);
  const postgres = await crashablePostgres();
  const proxy = await pgProxy(postgres.url);
  const installation = await FaultInstallation.open(postgres.url);
  return { postgres, proxy, installation };
}
