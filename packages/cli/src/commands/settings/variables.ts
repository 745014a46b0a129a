import { Command } from "@commander-js/extra-typings";
import { changeOrCreate } from "../../client/change-or-create.ts";
import { path } from "../../client/client.ts";
import type { Variable } from "../../client/resources.ts";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { readSource, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import type { Session } from "../../session.ts";
import { HIDDEN, VARIABLES } from "../../settings/kinds.ts";
import { plainText } from "../../terminal.ts";
import { addTransferCommands } from "./transfer.ts";

export function command(session: Session) {
  const variables = new Command("variables")
    .description("manage variables: values that tasks read by name")
    .addHelpText("after", examples("tradewind variables list --values", "tradewind variables set region eu"));

  variables
    .command("list")
    .description("list variables")
    .addHelpText("after", examples("tradewind variables list --values"))
    .option("--values", "show values")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit, values }) => {
      const listed = await session.client.list<Variable>({ ...LIST, limit });
      const shown = values
        ? listed
        : { ...listed, items: listed.items.map(({ value: _, ...rest }) => rest as Variable) };
      await session.printList(
        shown,
        values ? [KEY, VALUE, DESCRIPTION] : [KEY, DESCRIPTION],
        "No variables.",
      );
    });

  variables
    .command("show")
    .description("show a variable")
    .addHelpText(
      "after",
      examples(
        "tradewind variables show region",
        "# the value only, for scripts",
        "tradewind variables show region --value",
      ),
    )
    .argument("<key>")
    .option("--value", "print the value only")
    .action(async (key, options) => {
      const variable = await session.client.get<Variable>(path`/variables/${key}`, {
        what: `cannot show the variable ${key}`,
      });
      const value = variable.value ?? "";
      if (!options.value)
        return session.printObject(variable, [
          ["key", variable.key],
          ["value", value],
          ["description", variable.description],
        ]);
      if (value === HIDDEN || variable.value == null) throw notReadable(variable);
      session.terminal.data(session.terminal.width === undefined ? value : plainText(value, false));
    });

  variables
    .command("set")
    .description("create or change a variable; the value may be @file or @- for stdin")
    .addHelpText(
      "after",
      examples(
        "tradewind variables set region eu",
        "tradewind variables set limits @limits.json --description 'per country'",
      ),
    )
    .argument("<key>")
    .argument("<value>")
    .option("--description <text>")
    .action(async (key, value, { description }) => {
      const { text } = readSource(value, "the value");
      const { made } = await setVariable(session, {
        key,
        value: text,
        ...(description === undefined ? {} : { description }),
      });
      await session.printDone({ key, [made]: true }, `Variable ${key} ${made}.`);
    });

  variables
    .command("delete")
    .description("delete a variable")
    .addHelpText("after", examples("tradewind variables delete region"))
    .argument("<key>")
    .action(async (key) => {
      await session.confirm(`Delete variable ${key}?`);
      await session.client.delete(path`/variables/${key}`, { what: `cannot delete the variable ${key}` });
      await session.printDone({ key, deleted: true }, `Variable ${key} deleted.`);
    });

  addTransferCommands(variables, session, VARIABLES);
  return variables;
}

const LIST = { path: "/variables", key: "variables", what: "cannot list the variables" } as const;
const SEALED_REASON = "cannot be read: it was sealed with another secret key";
const SEALED = `(${SEALED_REASON})`;
const KEY: Column<Variable> = { title: "KEY", value: (variable) => variable.key };
const VALUE: Column<Variable> = {
  title: "VALUE",
  value: (variable) => variable.value ?? SEALED,
  flexible: true,
};
const DESCRIPTION: Column<Variable> = {
  title: "DESCRIPTION",
  value: (variable) => variable.description ?? "",
  flexible: true,
  optional: true,
};

/** A script would use the mask as if it were the value. */
function notReadable({ key, value }: Variable): CliError {
  if (value == null)
    return new CliError("TW_CLI_SECRET_HIDDEN", `the value of the variable ${key} ${SEALED_REASON}.`, {
      exit: EXIT.failed,
      remedy: "start the server with the key that sealed it, or set the variable again",
    });
  return new CliError(
    "TW_CLI_SECRET_HIDDEN",
    `variable ${key} is a secret, and the server does not return its value.`,
    {
      exit: EXIT.failed,
      remedy: "use `tradewind variables export --with-secrets` on the server's machine",
    },
  );
}

interface Entry {
  readonly key: string;
  readonly value: unknown;
  readonly description?: string;
}

async function setVariable(session: Session, entry: Entry): Promise<{ made: "changed" | "created" }> {
  const what = `cannot set the variable ${entry.key}`;
  return changeOrCreate<{ made: "changed" | "created" }>(
    async () => {
      // Only given fields are changed: without a mask, a missing description would delete the stored one.
      const mask = entry.description === undefined ? ["value"] : ["value", "description"];
      await session.client.patch(path`/variables/${entry.key}`, {
        what,
        body: entry,
        query: { update_mask: mask },
      });
      return { made: "changed" };
    },
    async () => {
      await session.client.post("/variables", { what, body: entry, idempotent: true });
      return { made: "created" };
    },
  );
}
