import type { components } from "../../api/schema.gen.ts";

export type Pool = components["schemas"]["PoolResponse"];

export const POOLS = "/api/v2/pools";
/** The home page and explanations show pools, too. */
export const SHOW_POOLS = [POOLS, "/ui/home"];
