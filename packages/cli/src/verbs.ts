/**
 * The verbs of all commands, one per meaning, and synonyms from other tools. A command name that is not in this table breaks a
 * law (test/laws/verbs.test.ts); a synonym gets a hint.
 */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";

/** Each verb, and words that users may type instead. */
export const VERBS: Readonly<Record<string, readonly string[]>> = {
  list: ["ls", "all"],
  show: ["get", "describe", "view", "info", "inspect", "details", "status", "state"],
  /** Creates or changes an object named by the user. */
  set: ["add", "create", "new", "put", "update", "edit", "change", "upsert", "apply", "save"],
  /** Creates an object named by the server; never changes one. */
  create: ["add", "new", "make", "start", "run", "submit"],
  delete: ["rm", "remove", "del", "drop", "destroy", "revoke", "forget"],
  import: ["load", "restore"],
  export: ["dump", "backup"],
  test: ["check", "ping", "try", "verify"],
  trigger: ["run", "start", "launch", "execute", "create"],
  pause: ["disable", "suspend", "hold"],
  unpause: ["resume", "enable", "continue"],
  /** Shows progress until the end; the exit code is the result. */
  wait: ["watch", "follow", "await", "attach"],
  /** Ends gracefully. */
  stop: ["close", "finish", "shutdown"],
  /** Ends at once, as failed. */
  cancel: ["kill", "abort", "terminate"],
  start: ["run", "trigger", "launch"],
  restart: ["reload", "bounce"],
  clear: ["rerun", "retry", "replay", "reset"],
  mark: ["set-state"],
  retry: ["rerun", "replay", "resend", "requeue"],
  /** Decides what a task waits for. */
  answer: ["approve", "reject", "respond", "decide"],
  send: ["emit", "publish", "post", "notify"],
  listen: ["tail", "watch", "follow", "subscribe"],
  /** Runs a service process. */
  serve: ["run", "server", "start"],
  diff: ["compare"],
  why: ["explain"],
  logs: ["log", "tail"],
  output: ["outputs", "xcom", "result"],
  /** Lets a process finish, and start nothing more. */
  drain: ["cordon", "quiesce"],
  /** Ends a process that is listed, not an object that a user has created. */
  remove: ["rm", "delete", "evict"],
  migrate: ["upgrade", "init", "up"],
  clean: ["prune", "purge", "vacuum"],
};

/** Nouns used as commands, where the group has no other command for the object. */
export const NOUNS: readonly string[] = [
  "errors",
  "versions",
  "events",
  "graph",
  "conditions",
  "url",
  "status",
];

/** Adds hidden commands for synonyms that name the right verb of the group. */
export function addVerbHints(group: CommandUnknownOpts): void {
  const known = [...group.commands];
  const named = new Set(known.map((command) => command.name()));
  for (const word of new Set(Object.values(VERBS).flat())) {
    if (named.has(word)) continue;
    const meant = known.find((command) => VERBS[command.name()]?.includes(word));
    if (meant === undefined) continue;
    group
      .command(word, { hidden: true })
      .argument("[words...]")
      .allowUnknownOption()
      .helpOption(false)
      .action(() =>
        meant.error(`error: ${group.name()} has no ${word}: use ${group.name()} ${meant.name()}.`),
      );
  }
}

/** Verbs typed without a group, and the intended command. */
const GROUPLESS: Readonly<Record<string, string>> = {
  list: "dags list",
  trigger: "dags trigger",
  run: "dags trigger",
  start: "dags trigger",
  test: "dags test",
  pause: "dags pause",
  unpause: "dags unpause",
  graph: "dags graph",
  show: "runs show",
  status: "runs show",
  logs: "runs logs",
  log: "runs logs",
  wait: "runs wait",
  watch: "runs wait",
  cancel: "runs cancel",
  clear: "runs clear",
  rerun: "runs clear",
  retry: "runs clear",
  why: "tasks why",
  migrate: "db migrate",
};

/** Adds hidden top-level commands for these verbs that name the intended command. */
export function addTopLevelHints(program: CommandUnknownOpts): void {
  for (const [word, meant] of Object.entries(GROUPLESS)) {
    program
      .command(word, { hidden: true })
      .argument("[words...]")
      .allowUnknownOption()
      .helpOption(false)
      .action(() => program.error(`error: unknown command \`${word}\`: use \`tradewind ${meant}\`.`));
  }
}
