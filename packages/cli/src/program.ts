/**
 * The command tree. The module of a group is loaded only when that group is called, so `tradewind dags list` does not load
 * the engine and `tradewind --help` loads no group.
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
    summary: "run all services in one process, with an embedded database",
    load: () => import("./commands/service/standalone.ts"),
  },
  {
    name: "open",
    summary: "open the web UI, signed in",
    load: () => import("./commands/system/open.ts"),
  },
  {
    name: "worker",
    summary: "run tasks of the queue executor on this machine",
    load: () => import("./commands/service/worker.ts"),
  },
  {
    name: "executors",
    summary: "list executors: where tasks run, with slots, queues and health",
    load: () => import("./commands/system/executors.ts"),
  },
  {
    name: "workers",
    summary: "list, inspect, drain and remove workers",
    load: () => import("./commands/system/workers.ts"),
  },
  {
    name: "execute",
    summary: "run one task in a pod of the Kubernetes executor",
    load: () => import("./commands/service/execute.ts"),
  },
  {
    name: "dags",
    summary: "list, inspect, trigger, pause and test DAGs",
    load: () => import("./commands/dag/dags.ts"),
  },
  {
    name: "runs",
    summary: "list, inspect, wait for, cancel and rerun runs",
    load: () => import("./commands/run/runs.ts"),
  },
  {
    name: "backfill",
    summary: "create, watch, pause, change and cancel backfills",
    load: () => import("./commands/run/backfill.ts"),
  },
  {
    name: "tasks",
    summary: "list, test, explain, rerun and mark tasks",
    load: () => import("./commands/task/tasks.ts"),
  },
  {
    name: "approvals",
    summary: "list, show and answer approvals",
    load: () => import("./commands/run/approvals.ts"),
  },
  {
    name: "waiting",
    summary: "list waiting tasks and schedules",
    load: () => import("./commands/signal/waiting.ts"),
  },
  {
    name: "triggers",
    summary: "list the triggers that tasks and schedules wait for",
    load: () => import("./commands/signal/triggers.ts"),
  },
  {
    name: "deadlines",
    summary: "list the deadlines of runs and tasks",
    load: () => import("./commands/run/deadlines.ts"),
  },
  {
    name: "deliveries",
    summary: "list and retry webhooks, mails and signals about runs and tasks",
    load: () => import("./commands/system/deliveries.ts"),
  },
  {
    name: "webhooks",
    summary: "print webhook URLs and send test webhooks",
    load: () => import("./commands/signal/webhooks.ts"),
  },
  {
    name: "signals",
    summary: "send, list and listen to signals",
    load: () => import("./commands/signal/signals.ts"),
  },
  {
    name: "assets",
    summary: "list assets and their events, send events",
    load: () => import("./commands/signal/assets.ts"),
  },
  {
    name: "pools",
    summary: "manage pools: limits on concurrent tasks",
    load: () => import("./commands/settings/pools.ts"),
  },
  {
    name: "variables",
    summary: "manage variables",
    load: () => import("./commands/settings/variables.ts"),
  },
  {
    name: "connections",
    summary: "manage connections: addresses and credentials",
    load: () => import("./commands/settings/connections.ts"),
  },
  {
    name: "events",
    summary: "list the audit log: who changed what, and when",
    load: () => import("./commands/system/events.ts"),
  },
  { name: "tokens", summary: "manage API tokens", load: () => import("./commands/settings/tokens.ts") },
  {
    name: "scheduler",
    summary: "run a scheduler on DATABASE_URL",
    load: () => import("./commands/service/scheduler.ts"),
  },
  {
    name: "triggerer",
    summary: "run a triggerer on DATABASE_URL",
    load: () => import("./commands/service/triggerer.ts"),
  },
  {
    name: "api",
    summary: "run the API server on DATABASE_URL",
    load: () => import("./commands/service/api.ts"),
  },
  {
    name: "dag-processor",
    summary: "run the DAG processor on DATABASE_URL",
    load: () => import("./commands/service/dag-processor.ts"),
  },
  {
    name: "db",
    summary: "migrate, inspect and clean the database",
    load: () => import("./commands/system/db.ts"),
  },
  {
    name: "doctor",
    summary: "check this installation and suggest fixes",
    load: () => import("./commands/system/doctor.ts"),
  },
  {
    name: "completion",
    summary: "print a shell completion script",
    load: () => import("./commands/system/completion.ts"),
  },
  { name: "version", summary: "print the version", load: () => import("./commands/system/version.ts") },
];

/** The program with the group called by `argv` loaded; the other groups have only names and summaries. */
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
/** `--output` is a global option and accepted anywhere on the line; `dags graph` has more choices. */
const GRAPH_FORMATS = [...FORMATS, "mermaid", "dot", "svg"] as const;

/** @param formats null: any, to find the called command. */
function baseProgram(formats: readonly string[] | null) {
  const output = new Option("-o, --output <format>", "output format");
  return new Command("tradewind")
    .description("Tradewind: an event-driven workflow orchestrator for TypeScript.")
    .version(cliVersion(), "-V, --version", "print the version")
    .addOption(
      new Option("--home <folder>", "data folder of a standalone (TRADEWIND_HOME; default: .tradewind)"),
    )
    .addOption(
      new Option("--url <address>", "address of the server (TRADEWIND_URL; default: the home's standalone)"),
    )
    .addOption(
      new Option("--token <token>", "token for the server (TRADEWIND_TOKEN; default: the home's token)"),
    )
    .addOption(formats === null ? output : output.choices(formats))
    .addOption(new Option("--json", "short for --output json"))
    .addOption(
      new Option(
        "--tz <zone>",
        "time zone of displayed dates: an IANA name or local (default: UTC)",
      ).argParser(parseTimeZone),
    )
    .addOption(
      new Option("--color <when>", "use of colours (also NO_COLOR, FORCE_COLOR)").choices([
        "auto",
        "always",
        "never",
      ]),
    )
    .addOption(new Option("-y, --yes", "do not ask for confirmation"))
    .addOption(new Option("-q, --quiet", "print results only"))
    .addOption(new Option("-v, --verbose", "print the stack of an error"))
    .addHelpText(
      "after",
      examples(
        "tradewind standalone",
        "tradewind dags list",
        "# start a run and wait for its end",
        "tradewind dags trigger etl --wait",
        "# why does this task not start?",
        "tradewind tasks why etl @latest load",
      ),
    )
    .addHelpText(
      "after",
      "\nExit codes:\n  0 success · 1 operation or run failed · 2 usage · 3 not found · 4 auth · 5 conflict\n  6 server or network · 124 wait timeout · 130 interrupted",
    );
}

/** The words that are not options, found by a temporary parser so that option values do not count as words. */
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
