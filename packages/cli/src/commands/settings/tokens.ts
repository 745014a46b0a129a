import { Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import type { Token } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { parseDuration, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

export function command(session: Session) {
  const tokens = new Command("tokens")
    .description("manage API tokens: of users with full access, of workers, and of Prometheus")
    .addHelpText(
      "after",
      examples(
        "tradewind tokens create ci --expires-in 90d",
        "# for machines that run tasks of the queue executor",
        "tradewind tokens create --role worker",
        "# for Prometheus",
        "tradewind tokens create --role metrics",
      ),
    );

  tokens
    .command("list")
    .description("list tokens, without their secret values")
    .addHelpText("after", examples("tradewind tokens list"))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Token>({
        path: "/tokens",
        key: "tokens",
        what: "cannot list the tokens",
        limit,
      });
      await session.printList(listed, COLUMNS, "No tokens.");
    });

  tokens
    .command("create")
    .description("create a token and print it; it cannot be shown again")
    .addHelpText("after", examples("tradewind tokens create ci --expires-in 90d"))
    .argument("[name]", "name of the token's user, shown in the audit log (default: the role)")
    .addOption(
      new Option(
        "--role <role>",
        "admin: full access; worker: may only execute tasks; metrics: may only read /metrics",
      )
        .choices(["admin", "worker", "metrics"] as const)
        .default("admin" as const),
    )
    .option("--expires-in <duration>", "lifetime, e.g. 90d (default: never expires)", parseDuration)
    .action(async (given, { expiresIn, role }) => {
      const name = given ?? role;
      const made = await session.client.post<Token & { token: string }>("/tokens", {
        what: `cannot create the token ${name}`,
        body: {
          name,
          role,
          ...(expiresIn === undefined ? {} : { expires_at: new Date(Date.now() + expiresIn).toISOString() }),
        },
      });
      if (session.format !== "table") return session.printObject(made, []);
      session.terminal.data(made.token);
      session.note(`Token ${made.id} (${name}) created. Store it now: it cannot be shown again.`);
    });

  tokens
    .command("delete")
    .description("delete a token; it becomes invalid at once")
    .addHelpText("after", examples("tradewind tokens delete 2"))
    .argument("<id>", "number of the token, from `tradewind tokens list`", wholeNumber(1))
    .action(async (id) => {
      await session.confirm(`Delete token ${id}?`);
      await session.client.delete(path`/tokens/${id}`, { what: `cannot delete the token ${id}` });
      await session.printDone({ id, deleted: true }, `Token ${id} deleted.`);
    });

  return tokens;
}

const COLUMNS: readonly Column<Token>[] = [
  { title: "ID", value: (token) => String(token.id), align: "right" },
  { title: "NAME", value: (token) => token.name, flexible: true },
  { title: "ROLE", value: (token) => token.role },
  { title: "MADE", value: (token) => relativeTime(token.created_at) },
  {
    title: "LAST USED",
    value: (token) => (token.is_current ? "now, by you" : relativeTime(token.last_used_at)),
  },
  { title: "EXPIRES", value: (token) => (token.expires_at === null ? "never" : moment(token.expires_at)) },
];
