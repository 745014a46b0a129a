/**
 * The rules of the code base, each a function from the source tree to its violations. CONTRIBUTING.md describes them. A new
 * dependency between two folders is a decision to make, not a detail.
 */
import { readPackage, type SourceFile, type SourceTree, target } from "./source-tree.ts";

export interface Law {
  readonly says: string;
  readonly violations: (tree: SourceTree) => string[];
}

const ENGINE = "packages/engine/src/";

function isOfOtherPackage(path: string): boolean {
  return path.startsWith("packages/") && !path.startsWith("packages/web/");
}

/** Parts of the SDK without state: requests of approvals, the table of built-in triggers, names of signals, and texts. */
const PURE_SDK: ReadonlySet<string> = new Set([
  "@tradewind/sdk/approval-request",
  "@tradewind/sdk/builtin-triggers",
  "@tradewind/sdk/signal-names",
  "@tradewind/sdk/wording",
]);

export const LAWS: readonly Law[] = [
  {
    says: "model/ imports nothing but itself, the SDK's types and its tables and texts",
    violations: (tree) =>
      importsIn(tree, `${ENGINE}model/`)
        .filter(({ to, isTypeOnly, isDynamic }) => {
          if (isDynamic) return true;
          if (to?.startsWith(`${ENGINE}model/`) || PURE_SDK.has(to ?? "")) return false;
          return !(isTypeOnly && to?.startsWith("@tradewind/sdk/"));
        })
        .map(sentence),
  },
  {
    says: "model/ uses no clock, no randomness, no process and nothing asynchronous",
    violations: (tree) =>
      production(tree, `${ENGINE}model/`).flatMap((file) =>
        phrases(file)
          .filter(({ text }) => IMPURE.test(text))
          .map(({ text, line }) => `${file.path}:${line}: ${text}`),
      ),
  },
  {
    says: "user code is loaded only where it runs: bundler child, task runner, trigger runner, the child of `dags test`",
    violations: (tree) =>
      importsIn(tree, "packages/")
        .filter(({ file, to, isDynamic }) => isDynamic && to === null && !LOADERS.test(file.path))
        .filter(({ file }) => !CONFIGURED.test(file.path))
        .map(sentence),
  },
  {
    says: "outside those children nothing is run from text: no eval, no new Function, no vm, no worker thread",
    violations: (tree) => [
      ...importsIn(tree, "packages/")
        .filter(({ file, to }) => /^node:(?:vm|worker_threads)$/.test(to ?? "") && !LOADERS.test(file.path))
        .map(sentence),
      ...production(tree, "packages/").flatMap((file) =>
        phrases(file)
          .filter(({ text }) => /^(?:eval\(|new Function|Function\()/.test(text))
          .map(({ text, line }) => `${file.path}:${line}: ${text}`),
      ),
    ],
  },
  {
    says: "no service reaches, over any number of imports, a module that loads user code",
    violations: (tree) =>
      production(tree, ENGINE)
        .filter(({ path }) => isService(path))
        .flatMap((file) => pathsTo(tree, file, loadsUserCode)),
  },
  {
    says: "services do not import from the folders of those children, except types",
    violations: (tree) =>
      importsIn(tree, ENGINE)
        .filter(({ file, to, isTypeOnly }) => !isTypeOnly && isService(file.path) && CHILDREN.test(to ?? ""))
        .map(sentence),
  },
  {
    says: "only store/ holds SQL and talks to the driver",
    violations: (tree) => [
      ...production(tree, "packages/")
        .filter(({ path }) => !path.startsWith(`${ENGINE}store/`))
        .flatMap((file) =>
          texts(file)
            .filter(({ text }) => SQL.test(text))
            .map(({ text, line }) => `${file.path}:${line}: ${text.trim().slice(0, 60)}`),
        ),
      ...importsIn(tree, "packages/")
        .filter(({ to }) => to === "pg" || to === "kysely")
        .filter(({ file }) => !file.path.startsWith(`${ENGINE}store/`) && !USERS_DATABASES.test(file.path))
        .map(sentence),
      // Code that accesses users' databases must not be able to access ours.
      ...importsIn(tree, ENGINE)
        .filter(({ file, to }) => USERS_DATABASES.test(file.path) && to?.startsWith(`${ENGINE}store/`))
        .map(sentence),
    ],
  },
  {
    says: "the state of a task instance is written by claim, batch and edit only",
    violations: (tree) =>
      production(tree, "packages/")
        .filter(({ path }) => !STATE_WRITERS.has(path))
        .flatMap((file) =>
          texts(file)
            .filter(({ text }) => writesState(text))
            .map(({ line }) => `${file.path}:${line}: writes task_instance.state`),
        ),
  },
  {
    says: "every prepared statement has a name of its own",
    violations: (tree) => {
      const seen = new Map<string, string>();
      return production(tree, ENGINE).flatMap((file) =>
        statementNames(file).flatMap(({ name, line }) => {
          const place = `${file.path}:${line}`;
          const other = seen.get(name);
          if (other !== undefined) return [`${place}: "${name}" is also declared at ${other}`];
          seen.set(name, place);
          return [];
        }),
      );
    },
  },
  {
    says: "a folder of the engine imports only from the folders below it, and no stage from another stage",
    violations: (tree) =>
      importsIn(tree, ENGINE)
        .filter(({ file, to }) => {
          const [from, target] = [folderOf(file.path), folderOf(to ?? "")];
          if (from === target || from === null || target === null) return false;
          return !BELOW[from]?.includes(target) && to !== EXECUTOR_CONTRACT;
        })
        .map(sentence),
  },
  {
    says: "the contract of executors is imported by other stages for its types only",
    violations: (tree) =>
      importsIn(tree, ENGINE)
        .filter(({ file, isTypeOnly, to }) => {
          const from = folderOf(file.path);
          return to === EXECUTOR_CONTRACT && from !== "execute" && from !== "process" && !isTypeOnly;
        })
        .map(sentence),
  },
  {
    says: "a folder holds at most 26 source files",
    violations: (tree) => {
      const counts = new Map<string, number>();
      for (const { path } of production(tree, "packages/")) {
        const folder = path.slice(0, path.lastIndexOf("/"));
        counts.set(folder, (counts.get(folder) ?? 0) + 1);
      }
      return [...counts]
        .filter(([folder, count]) => count > 26 && folder.includes("/src"))
        .map(([folder, count]) => `${folder}: ${count} files; give it folders of its own`);
    },
  },
  {
    says: "sdk imports nothing outside itself, and none of Node's modules",
    violations: (tree) =>
      importsIn(tree, "packages/sdk/src/")
        .filter(({ to }) => !to?.startsWith("packages/sdk/src/"))
        .map(sentence),
  },
  {
    says: "sdk has no runtime dependency",
    violations: () =>
      ["dependencies", "optionalDependencies", "peerDependencies"]
        .filter((field) => Object.keys((readPackage("sdk")[field] as object | undefined) ?? {}).length > 0)
        .map((field) => `packages/sdk/package.json: ${field}`),
  },
  {
    says: "packages import each other by name, never by path",
    violations: (tree) =>
      importsIn(tree, "packages/")
        .filter(({ file, to }) => to?.startsWith("packages/") && packageOf(to) !== packageOf(file.path))
        .map(sentence),
  },
  {
    says: "web knows the server only by the types of its API: it imports from no other package of this repository",
    violations: (tree) =>
      importsIn(tree, "packages/web/src/")
        .filter(
          ({ to }) => to !== null && (/^(?:tradewind$|@tradewind\/|node:)/.test(to) || isOfOtherPackage(to)),
        )
        .map(sentence),
  },
  {
    says: "no source file has more than 400 lines, no test more than 600",
    violations: (tree) =>
      [...tree.values()]
        .filter(({ path }) => path.startsWith("packages/"))
        .filter(({ lines, isTest }) => lines > (isTest ? 600 : 400))
        .map(({ path, lines }) => `${path}: ${lines} lines; split it by stage of the computation`),
  },
  {
    says: "a file is named after what it owns",
    violations: (tree) =>
      [...tree.keys()]
        .filter((path) => VAGUE.test(path))
        .map((path) => `${path}: its name does not describe its content`),
  },
];

const IMPURE =
  /^(?:Date\.now|new Date\(\)|Math\.random|performance\.|process\.|crypto\.|setTimeout|setInterval|setImmediate|queueMicrotask|await|async)/;
const LOADERS =
  /^packages\/(?:engine\/src\/(?:bundle\/bundler|code\/loader|execute\/task-runner|trigger\/runner)\/|cli\/src\/dag-test\/child\.ts$|cli\/bin\/)/;
/** Loads a module that the operator has named in the configuration: not the code of a DAG. */
const CONFIGURED = /^packages\/engine\/src\/service\/configured-module\.ts$/;
const CHILDREN =
  /^packages\/engine\/src\/(?:bundle\/bundler|child\/guardian|code\/loader|execute\/task-runner|plan\/timetable-runner|trigger\/runner)\//;
/** The trigger that polls a user's own database: it needs the driver, although it contains no statement but the user's. */
const USERS_DATABASES = /^packages\/engine\/src\/builtin\/sql[\w-]*\.ts$/;
const STATE_WRITERS = new Set(
  ["task/instance-moves", "task/new-instances", "run/run-claim", "edit/instance-states"].map(
    (name) => `${ENGINE}store/${name}.ts`,
  ),
);
const EXECUTOR_CONTRACT = `${ENGINE}execute/contract.ts`;

/**
 * What each folder of the engine may import from. The stages are bundle, plan, run, execute, trigger, signal and notify:
 * they meet in store/ and model/, and the composition roots in process/ connect them.
 */
const LIBRARY = ["model", "secret", "service", "store"];
const BELOW: Readonly<Record<string, readonly string[]>> = {
  model: [],
  service: [],
  secret: ["service"],
  child: ["service"],
  builtin: ["secret", "service"],
  log: ["secret", "service"],
  store: ["model", "secret", "service"],
  job: LIBRARY,
  output: LIBRARY,
  code: [...LIBRARY, "child"],
  bundle: [...LIBRARY, "child", "code", "job", "log"],
  plan: [...LIBRARY, "child", "code", "job", "log"],
  run: [...LIBRARY, "code", "job", "log", "output"],
  execute: [...LIBRARY, "builtin", "child", "code", "log", "output"],
  trigger: [...LIBRARY, "builtin", "child", "code", "job", "log"],
  signal: [...LIBRARY, "job"],
  notify: [...LIBRARY, "job", "log"],
  // It serves the signal log and the task execution API, and lists the dates of timetables.
  api: [...LIBRARY, "code", "execute", "job", "log", "output", "plan", "signal"],
  process: [
    ...LIBRARY,
    "api",
    "bundle",
    "child",
    "code",
    "execute",
    "job",
    "log",
    "notify",
    "output",
    "plan",
    "run",
    "signal",
    "trigger",
  ],
};

/** The first folder below the engine's sources; null for a file elsewhere, or beside the folders. */
function folderOf(path: string): string | null {
  if (!path.startsWith(ENGINE)) return null;
  const [folder, ...rest] = path.slice(ENGINE.length).split("/");
  return rest.length === 0 ? null : (folder ?? null);
}

/** True if it may use the database: everything of the engine but its child programs, and the code they share with their parents. */
function isService(path: string): boolean {
  return path.startsWith(ENGINE) && !CHILDREN.test(path) && !path.startsWith(`${ENGINE}builtin/`);
}
const SQL =
  /\bSELECT\s[\s\S]*?\bFROM\s|\bSELECT\s+\w+\(|\bINSERT\s+INTO\s|\bUPDATE\s+\w+\s+(?:\w+\s+)?SET\s|\bDELETE\s+FROM\s|\b(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX|FUNCTION|DATABASE)\s/;
const VAGUE = /(?:^|\/)(?:utils?|helpers?|common|lib|misc|types|interfaces|[\w-]*manager)\.(?:ts|mjs)$/;

interface FoundImport {
  readonly file: SourceFile;
  readonly to: string | null;
  readonly isTypeOnly: boolean;
  readonly isDynamic: boolean;
  readonly line: number;
}

function production(tree: SourceTree, folder: string): SourceFile[] {
  return [...tree.values()].filter(({ path, isTest }) => path.startsWith(folder) && !isTest);
}

function importsIn(tree: SourceTree, folder: string): FoundImport[] {
  return production(tree, folder).flatMap((file) =>
    file.imports.map((each) => ({
      ...each,
      file,
      to: each.specifier === null ? null : target(file, each.specifier),
    })),
  );
}

function sentence({ file, to, line, isTypeOnly }: FoundImport): string {
  return `${file.path}:${line}: imports ${isTypeOnly ? "types of " : ""}${to ?? "a path computed at run time"}`;
}

/** Three tokens at a time, joined: enough to recognize a call or a member. */
function phrases(file: SourceFile): { text: string; line: number }[] {
  const code = file.tokens.filter(({ kind }) => kind === "word" || kind === "mark");
  return code.map((token, at) => {
    if (code[at - 1]?.text === ".") return { text: "", line: token.line };
    const rest = code.slice(at, at + 4).map(({ text }) => text);
    const text = rest[0] === "new" ? `new ${rest.slice(1).join("")}` : rest.join("");
    return { text, line: token.line };
  });
}

function texts(file: SourceFile): { text: string; line: number }[] {
  return file.tokens.filter(({ kind }) => kind === "string" || kind === "template");
}

function writesState(sql: string): boolean {
  if (/\bINSERT\s+INTO\s+task_instance\b/i.test(sql)) return true;
  const changes = /\bUPDATE\s+task_instance\b[\s\S]*?\bSET\b([\s\S]*)/i.exec(sql)?.[1];
  if (changes === undefined) return false;
  const assignments = changes.split(/\b(?:FROM|WHERE|RETURNING)\b/i, 1)[0]?.split(",") ?? [];
  // A substitution is a space: the columns it assigns are not known.
  return assignments.some((each) => each.trim() === "" || /^\s*state\s*=/.test(each));
}

function statementNames(file: SourceFile): { name: string; line: number }[] {
  return file.tokens.flatMap((token, at) => {
    const name = file.tokens[at + 2];
    const isCall = token.text === "statement" && token.kind === "word" && file.tokens[at + 1]?.text === "(";
    return isCall && name?.kind === "string" ? [{ name: name.text, line: name.line }] : [];
  });
}

/** One path, shown from import to import, for each forbidden module that is reachable. */
function pathsTo(tree: SourceTree, start: SourceFile, isForbidden: (file: SourceFile) => boolean): string[] {
  const ways = new Map([[start.path, start.path]]);
  const open = [start];
  const found: string[] = [];
  for (let file = open.pop(); file; file = open.pop()) {
    for (const { specifier, isTypeOnly } of file.imports) {
      const to = specifier === null || isTypeOnly ? null : target(file, specifier);
      if (to === null || ways.has(to)) continue;
      const way = `${ways.get(file.path)} -> ${to}`;
      ways.set(to, way);
      const next = tree.get(to);
      if (!next) continue;
      if (isForbidden(next)) found.push(way);
      open.push(next);
    }
  }
  return found;
}

function loadsUserCode(file: SourceFile): boolean {
  if (CONFIGURED.test(file.path)) return false;
  return file.imports.some(({ specifier, isDynamic }) => isDynamic && specifier === null);
}

function packageOf(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}
