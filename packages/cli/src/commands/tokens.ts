import { Command } from "@commander-js/extra-typings";
import { path } from "../client/client.ts";
import type { Token } from "../client/resources.ts";
import { parseDuration, wholeNumber } from "../input/values.ts";
import type { Column } from "../output/table.ts";
import { moment, relativeTime } from "../output/when.ts";
import type { Session } from "../session.ts";

export function command(session: Session) {
  const tokens = new Command("tokens").description("who may call the server; every token may do everything");

  tokens
    .command("list")
    .description("list the tokens; themselves they are never shown again")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Token>({
        path: "/tokens",
        key: "tokens",
        what: "cannot list the tokens",
        limit,
      });
      await session.printList(listed, COLUMNS, "There are no tokens.");
    });

  tokens
    .command("create")
    .description("make a token and print it, this once")
    .argument("<name>", "who or what will use it: the event log shows it")
    .option(
      "--expires-in <duration>",
      "after which it opens nothing, e.g. 90d; never when not given",
      parseDuration,
    )
    .action(async (name, { expiresIn }) => {
      const made = await session.client.post<Token & { token: string }>("/tokens", {
        what: `cannot make the token ${name}`,
        body: {
          name,
          ...(expiresIn === undefined ? {} : { expires_at: new Date(Date.now() + expiresIn).toISOString() }),
        },
      });
      if (session.format !== "table") return session.printObject(made, []);
      session.terminal.data(made.token);
      session.note(`Token ${made.id} (${name}) made. Keep it: it is not shown again.`);
    });

  tokens
    .command("revoke")
    .description("make a token invalid at once")
    .argument("<id>", "its number in the list", wholeNumber(1))
    .action(async (id) => {
      await session.confirm(`Revoke the token ${id}?`);
      await session.client.delete(path`/tokens/${id}`, { what: `cannot revoke the token ${id}` });
      await session.printDone({ id, revoked: true }, `Token ${id} revoked.`);
    });

  return tokens;
}

const COLUMNS: readonly Column<Token>[] = [
  { title: "ID", value: (token) => String(token.id), align: "right" },
  { title: "NAME", value: (token) => token.name, flexible: true },
  { title: "MADE", value: (token) => relativeTime(token.created_at) },
  {
    title: "LAST USED",
    value: (token) => (token.is_current ? "now, by you" : relativeTime(token.last_used_at)),
  },
  { title: "EXPIRES", value: (token) => (token.expires_at === null ? "never" : moment(token.expires_at)) },
];
