/**
 * The command tree. A group's module is loaded only when that group is called: `tradewind dags list` never pays for
 * the engine, and `tradewind --help` pays for nothing.
 */
import { Command, type CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import { examples } from "./examples.ts";
import { parseTimeZone } from "./input/time-zone.ts";
import type { GlobalOptions, Session } from "./session.ts";
import { cliVersion } from "./version.ts";

interface Group {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<{ command: (session: Session) => CommandUnknownOpts }>;
}

const GROUPS: readonly Group[] = [
  {
    name: "standalone",
    summary: "run everything on this machine, database included",
    load: () => import("./commands/service/standalone.ts"),
  },
  {
    name: "dags",
    summary: "list, show, draw, compare, trigger, pause and test DAGs",
    load: () => import("./commands/dag/dags.ts"),
  },
  {
    name: "runs",
    summary: "list, show, wait for, stop, cancel and clear runs, read their logs",
    load: () => import("./commands/run/runs.ts"),
  },
  {
    name: "backfill",
    summary: "make the runs of past dates, watch and change them",
    load: () => import("./commands/run/backfill.ts"),
  },
  {
    name: "tasks",
    summary: "list and test tasks, read logs, ask why one waits, start, stop, clear and mark",
    load: () => import("./commands/task/tasks.ts"),
  },
  {
    name: "waiting",
    summary: "what waits, on what, since when and until when",
    load: () => import("./commands/signal/waiting.ts"),
  },
  {
    name: "triggers",
    summary: "what tasks and schedules wait for",
    load: () => import("./commands/signal/triggers.ts"),
  },
  {
    name: "deadlines",
    summary: "by when runs and tasks have to succeed, and which have not",
    load: () => import("./commands/run/deadlines.ts"),
  },
  {
    name: "deliveries",
    summary: "webhooks, mails and signals of failures and missed deadlines",
    load: () => import("./commands/system/deliveries.ts"),
  },
  {
    name: "webhooks",
    summary: "let others report what tasks and schedules wait for",
    load: () => import("./commands/signal/webhooks.ts"),
  },
  {
    name: "signals",
    summary: "send signals, listen to them, and see who does",
    load: () => import("./commands/signal/signals.ts"),
  },
  {
    name: "assets",
    summary: "what tasks produce and DAGs are scheduled on, and what happened to it",
    load: () => import("./commands/signal/assets.ts"),
  },
  {
    name: "pools",
    summary: "limits on how much runs at once",
    load: () => import("./commands/settings/pools.ts"),
  },
  {
    name: "variables",
    summary: "values that tasks read by name",
    load: () => import("./commands/settings/variables.ts"),
  },
  {
    name: "connections",
    summary: "addresses and credentials that tasks read by name",
    load: () => import("./commands/settings/connections.ts"),
  },
  {
    name: "events",
    summary: "the audit log: who changed what, and when",
    load: () => import("./commands/system/events.ts"),
  },
  { name: "tokens", summary: "who may call the server", load: () => import("./commands/settings/tokens.ts") },
  {
    name: "scheduler",
    summary: "run a scheduler against DATABASE_URL",
    load: () => import("./commands/service/scheduler.ts"),
  },
  {
    name: "triggerer",
    summary: "run a triggerer against DATABASE_URL",
    load: () => import("./commands/service/triggerer.ts"),
  },
  {
    name: "api",
    summary: "run the API server against DATABASE_URL",
    load: () => import("./commands/service/api.ts"),
  },
  {
    name: "dag-processor",
    summary: "load DAG files into DATABASE_URL",
    load: () => import("./commands/service/dag-processor.ts"),
  },
  {
    name: "db",
    summary: "migrate, inspect and clean the database",
    load: () => import("./commands/system/db.ts"),
  },
  {
    name: "doctor",
    summary: "check this installation and say what to do",
    load: () => import("./commands/system/doctor.ts"),
  },
  {
    name: "completion",
    summary: "print a script that completes commands in your shell",
    load: () => import("./commands/system/completion.ts"),
  },
  { name: "version", summary: "print the version", load: () => import("./commands/system/version.ts") },
];

/** The program with the one group that `argv` calls; the other groups are names and summaries. */
export async function buildProgram(
  argv: readonly string[],
  makeSession: (options: () => GlobalOptions) => Session,
) {
  const [called, command] = calledWords(argv);
  const program = baseProgram(called === "dags" && command === "graph" ? GRAPH_FORMATS : FORMATS);
  const session = makeSession(() => program.opts() as GlobalOptions);
  for (const group of GROUPS) {
    if (group.name === called) {
      const { command } = await group.load();
      program.addCommand(command(session));
    } else {
      program.addCommand(new Command(group.name).summary(group.summary).description(group.summary));
    }
  }
  return { program, session };
}

const FORMATS = ["table", "json", "yaml"] as const;
/** `--output` belongs to the program, which reads it wherever it stands: one command has more choices. */
const GRAPH_FORMATS = [...FORMATS, "mermaid", "dot", "svg"] as const;

/** @param formats null: any, to find out which command is called. */
function baseProgram(formats: readonly string[] | null) {
  const output = new Option("-o, --output <format>", "how results are printed");
  return new Command("tradewind")
    .description("Tradewind: an event-driven workflow orchestrator for TypeScript.")
    .version(cliVersion(), "-V, --version", "print the version")
    .addOption(
      new Option("--home <folder>", "where a standalone keeps its data (TRADEWIND_HOME, else .tradewind)"),
    )
    .addOption(
      new Option("--url <address>", "the server (TRADEWIND_URL, else that of the home's standalone)"),
    )
    .addOption(new Option("--token <token>", "the server's token (TRADEWIND_TOKEN, else that of the home)"))
    .addOption(formats === null ? output : output.choices(formats))
    .addOption(new Option("--json", "the same as --output json"))
    .addOption(
      new Option("--tz <zone>", 'the zone of the dates shown: an IANA name, or "local" (UTC)').argParser(
        parseTimeZone,
      ),
    )
    .addOption(
      new Option("--color <when>", "colours (also NO_COLOR, FORCE_COLOR)").choices([
        "auto",
        "always",
        "never",
      ]),
    )
    .addOption(new Option("-y, --yes", "answer every question with yes"))
    .addOption(new Option("-q, --quiet", "results only, no notes"))
    .addOption(new Option("-v, --verbose", "show the stack of an error"))
    .addHelpText(
      "after",
      examples(
        "tradewind standalone",
        "tradewind dags list",
        "# start a run, watch it, and fail when it fails",
        "tradewind dags trigger etl --wait",
        "# why does this task of the latest run not start?",
        "tradewind tasks why etl @latest load",
      ),
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 ok · 1 operation or run failed · 2 usage · 3 not found · 4 auth · 5 conflict · 6 server or network · 124 wait timeout · 130 interrupted",
    );
}

/** The words that are no options: found with a throw-away parser, so that option values are not taken for them. */
function calledWords(argv: readonly string[]): readonly string[] {
  const scout = baseProgram(null)
    .exitOverride()
    .configureOutput({ writeErr: () => {}, writeOut: () => {} });
  try {
    const words = scout.parseOptions([...argv]).operands;
    return words[0] === "help" ? words.slice(1) : words;
  } catch {
    return [];
  }
}
