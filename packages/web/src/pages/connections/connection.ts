import type { components } from "../../api/schema.gen.ts";

/** Without its secrets, which are never answered. */
export type Connection = Omit<
  components["schemas"]["ConnectionResponse"],
  "extra" | "password" | "team_name"
>;

export const CONNECTIONS = "/api/v2/connections";

/** Types that built-in triggers, alerts and stores know; any other name is allowed. */
export const TYPES = ["postgres", "redis", "aws", "http", "https", "smtp"] as const;

/** As a person would write it, without the password. */
export function addressOf({ conn_type: type, login, host, port, schema }: Connection): string {
  const user = login ? `${login}@` : "";
  const place = `${host ?? ""}${port === null ? "" : `:${port}`}`;
  return `${type}://${user}${place}${schema ? `/${schema}` : ""}`;
}
