import { writeFileSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { changeOrCreate } from "../client/change-or-create.ts";
import { path } from "../client/client.ts";
import type { Variable } from "../client/resources.ts";
import { CliError, usageError } from "../errors.ts";
import { examples } from "../examples.ts";
import { EXIT } from "../exit-code.ts";
import { parseJson, readFile, readSource, wholeNumber } from "../input/values.ts";
import type { Column } from "../output/table.ts";
import type { Session } from "../session.ts";
import { plainText } from "../terminal.ts";

export function command(session: Session) {
  const variables = new Command("variables")
    .description("values that tasks read by name")
    .addHelpText("after", examples("tradewind variables list --values", "tradewind variables set region eu"));

  variables
    .command("list")
    .description("list the variables; their values are shown with --values")
    .addHelpText("after", examples("tradewind variables list --values"))
    .option("--values", "show the values too")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ limit, values }) => {
      const listed = await session.client.list<Variable>({ ...LIST, limit });
      const shown = values
        ? listed
        : { ...listed, items: listed.items.map(({ value: _, ...rest }) => rest as Variable) };
      await session.printList(
        shown,
        values ? [KEY, VALUE, DESCRIPTION] : [KEY, DESCRIPTION],
        "There are no variables.",
      );
    });

  variables
    .command("show")
    .description("show one variable")
    .addHelpText(
      "after",
      examples(
        "tradewind variables show region",
        "# only the value, for scripts",
        "tradewind variables show region --value",
      ),
    )
    .argument("<key>")
    .option("--value", "print the value and nothing else")
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
      session.terminal.data(session.terminal.width === undefined ? value : plainText(value, false));
    });

  variables
    .command("set")
    .description("create or change a variable; the value may be @file or @- for standard input")
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
      await session.confirm(`Delete the variable ${key}?`);
      await session.client.delete(path`/variables/${key}`, { what: `cannot delete the variable ${key}` });
      await session.printDone({ key, deleted: true }, `Variable ${key} deleted.`);
    });

  variables
    .command("import")
    .description(
      'set many variables from a JSON file: {"key": "value", "other": {"value": "...", "description": "..."}}',
    )
    .addHelpText("after", examples("tradewind variables import variables.json"))
    .argument("<file>", "a JSON file, or - for standard input")
    .action(async (file) => {
      const entries = parseEntries(parseJson(readFile(file), file), file);
      let done = 0;
      for (const entry of entries) {
        await setVariable(session, entry).catch((error: unknown) => {
          if (error instanceof CliError)
            session.note(`${done} of ${entries.length} variables were set before this one failed.`);
          throw error;
        });
        done++;
        session.terminal.status(`${done} of ${entries.length} variables set`);
      }
      await session.printDone({ imported: done }, `${done} variables set.`);
    });

  variables
    .command("export")
    .description("write all variables, values included, as JSON that import reads")
    .addHelpText("after", examples("tradewind variables export variables.json"))
    .argument("[file]", "where to (readable by you only); standard output when not given")
    .action(async (file) => {
      const { items } = await session.client.list<Variable>({ ...LIST, limit: 0 });
      const readable = items.filter(({ value }) => value != null && value !== HIDDEN);
      const all = Object.fromEntries(
        readable.map(({ key, value, description }) => [key, description ? { value, description } : value]),
      );
      if (readable.length < items.length) {
        const left = items.filter((item) => !readable.includes(item)).map((item) => item.key);
        session.note(`Left out, because the server never shows them: ${left.join(", ")}.`);
      }
      const text = JSON.stringify(all, null, 2);
      if (file === undefined) return session.terminal.data(text);
      writeExport(file, text);
      session.note(`${readable.length} variables written to ${file}.`);
    });

  return variables;
}

const LIST = { path: "/variables", key: "variables", what: "cannot list the variables" } as const;
/** What the API shows of a variable whose key names a secret. Written back, it would replace the secret. */
const HIDDEN = "***";
const SEALED = "(cannot be read: it was sealed with another secret key)";
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

interface Entry {
  readonly key: string;
  readonly value: unknown;
  readonly description?: string;
}

async function setVariable(session: Session, entry: Entry): Promise<{ made: "changed" | "created" }> {
  const what = `cannot set the variable ${entry.key}`;
  return changeOrCreate<{ made: "changed" | "created" }>(
    async () => {
      // Only what was given is changed: without a mask a missing description would be an order to erase it.
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

/** The file is checked whole before the first variable is set. */
function parseEntries(value: unknown, file: string): Entry[] {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw usageError(`${file} must hold a JSON object of variables.`, '{"region": "eu", "limit": "10"}');
  }
  return Object.entries(value).map(([key, entry]: [string, unknown]) => {
    if (entry !== null && typeof entry === "object" && !Array.isArray(entry) && "value" in entry) {
      const { value: inner, description, ...others } = entry as Record<string, unknown>;
      if (Object.keys(others).length === 0 && (description == null || typeof description === "string")) {
        return { key, value: inner, ...(typeof description === "string" ? { description } : {}) };
      }
    }
    return { key, value: entry };
  });
}

function writeExport(file: string, text: string): void {
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600 });
  } catch (error) {
    throw new CliError("TW_CLI_WRITE", `cannot write ${file}: ${(error as Error).message}.`, {
      exit: EXIT.failed,
      cause: error,
    });
  }
}
