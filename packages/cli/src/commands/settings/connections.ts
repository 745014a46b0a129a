import { Command } from "@commander-js/extra-typings";
import { changeOrCreate } from "../../client/change-or-create.ts";
import { path } from "../../client/client.ts";
import type { Connection } from "../../client/resources.ts";
import { usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { checkHost, parseConnectionUri } from "../../input/connection-uri.ts";
import { parseJson, readSource, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import type { Session } from "../../session.ts";
import { CONNECTIONS } from "../../settings/kinds.ts";
import { addTestCommand } from "./connection-test.ts";
import { addTransferCommands } from "./transfer.ts";

export function command(session: Session) {
  const connections = new Command("connections")
    .description("manage connections: addresses and credentials that tasks read by name")
    .addHelpText("after", examples("tradewind connections list", "tradewind connections show warehouse"));

  connections
    .command("list")
    .description("list connections")
    .addHelpText("after", examples("tradewind connections list"))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Connection>({
        path: "/connections",
        key: "connections",
        what: "cannot list the connections",
        limit,
      });
      await session.printList(listed, COLUMNS, "No connections.");
    });

  connections
    .command("show")
    .description("show a connection, without its secrets")
    .addHelpText("after", examples("tradewind connections show warehouse"))
    .argument("<id>")
    .action(async (id) => {
      const found = await session.client.get<Connection>(path`/connections/${id}`, {
        what: `cannot show the connection ${id}`,
      });
      await session.printObject(found, [
        ["id", found.connection_id],
        ["type", found.conn_type],
        ["host", found.host],
        ["port", found.port === null ? null : String(found.port)],
        ["schema", found.schema],
        ["login", found.login],
        ["password", found.password],
        ["extra", found.extra],
        ["description", found.description],
      ]);
    });

  connections
    .command("set")
    .description("create or change a connection")
    .addHelpText(
      "after",
      examples(
        "tradewind connections set warehouse --uri @warehouse.uri",
        "tradewind connections set warehouse --type postgres --host db.example",
        "# password from stdin: other users can see arguments",
        "tradewind connections set warehouse --password @- < password.txt",
      ),
    )
    .argument("<id>")
    .option("--uri <uri>", "the whole connection as a URI: type://login:password@host:port/schema?name=value")
    .option("--type <type>", "connection type, e.g. postgres, http, s3")
    .option("--host <host>")
    .option("--port <port>", "", wholeNumber(1, 65535))
    .option("--schema <schema>", "schema, e.g. the database name")
    .option("--login <login>")
    .option(
      "--password <password>",
      "password; prefer @file or @-, because other users of this machine can see arguments",
    )
    .option("--extra <json>", "more settings: a JSON object or @file")
    .option("--description <text>")
    .action(async (id, options) => {
      const parts = {
        ...(options.uri === undefined
          ? {}
          : parseConnectionUri(readSource(options.uri, "--uri").text.trim())),
        ...given({
          conn_type: options.type,
          host: options.host === undefined ? undefined : checkHost(options.host, "--host"),
          port: options.port,
          schema: options.schema,
          login: options.login,
          password:
            options.password === undefined
              ? undefined
              : readSource(options.password, "--password").text.replace(/\r?\n$/, ""),
          extra: options.extra === undefined ? undefined : checkedExtra(options.extra),
          description: options.description,
        }),
      };
      const what = `cannot set the connection ${id}`;
      const body = { connection_id: id, ...parts };
      const { connection, made } = await changeOrCreate(
        async () => {
          const conn_type =
            parts.conn_type ??
            (await session.client.get<Connection>(path`/connections/${id}`, { what })).conn_type;
          const connection = await session.client.patch<Connection>(path`/connections/${id}`, {
            what,
            body: { conn_type, ...body },
            // Only given fields are changed; an omitted password is kept.
            query: { update_mask: Object.keys(parts) },
          });
          return { connection, made: "changed" };
        },
        async () => {
          if (parts.conn_type === undefined)
            throw usageError(
              `connection ${id} does not exist, and a new connection needs a type.`,
              "add --type, e.g. --type postgres, or use --uri",
            );
          return {
            connection: await session.client.post<Connection>("/connections", {
              what,
              body,
              idempotent: true,
            }),
            made: "created",
          };
        },
      );
      await session.printDone(connection, `Connection ${id} ${made}.`);
    });

  connections
    .command("delete")
    .description("delete a connection")
    .addHelpText("after", examples("tradewind connections delete warehouse"))
    .argument("<id>")
    .action(async (id) => {
      await session.confirm(`Delete connection ${id}?`);
      await session.client.delete(path`/connections/${id}`, { what: `cannot delete the connection ${id}` });
      await session.printDone({ connection_id: id, deleted: true }, `Connection ${id} deleted.`);
    });

  addTestCommand(connections, session);
  addTransferCommands(connections, session, CONNECTIONS);
  return connections;
}

const COLUMNS: readonly Column<Connection>[] = [
  { title: "ID", value: (connection) => connection.connection_id },
  { title: "TYPE", value: (connection) => connection.conn_type },
  { title: "HOST", value: (connection) => connection.host ?? "", flexible: true },
  {
    title: "PORT",
    value: (connection) => (connection.port === null ? "" : String(connection.port)),
    align: "right",
  },
  { title: "LOGIN", value: (connection) => connection.login ?? "", optional: true },
  {
    title: "DESCRIPTION",
    value: (connection) => connection.description ?? "",
    flexible: true,
    optional: true,
  },
];

function checkedExtra(text: string): string {
  const source = readSource(text, "--extra");
  return JSON.stringify(parseJson(source.text, source.name));
}

function given<T extends Record<string, unknown>>(parts: T): Partial<T> {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as Partial<T>;
}
