import type { ConnectionFacts } from "@tradewind/sdk/program";

/** A stored connection to the database at this URL. */
export function postgresFacts(url: string): Partial<ConnectionFacts> {
  const { hostname, password, pathname, port, username } = new URL(url);
  return {
    type: "postgres",
    host: hostname,
    port: Number(port),
    login: decodeURIComponent(username),
    password: decodeURIComponent(password),
    schema: pathname.slice(1),
  };
}
