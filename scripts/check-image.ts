/**
 * `npm run check:image`: executes deploy/Dockerfile without a container engine. Each stage is a clean folder, each
 * instruction runs in it as an ordinary user, and the command of the image runs a DAG at the end. Needs the npm registry.
 *
 * Not checked: the base image with its Node and `tini`, the creation of layers, and the owner of files (`chown` and `apt-get` do
 * nothing for an ordinary user).
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, matchesGlob, relative } from "node:path";

const ROOT = join(import.meta.dirname, "..");
/** Started as root: the account of all commands. PostgreSQL needs one with a name. */
const UID = 65_534;
const isRoot = process.getuid?.() === 0;
const account = isRoot ? { uid: UID, gid: UID } : {};

interface Stage {
  readonly root: string;
  folder: string;
  env: Record<string, string>;
  entry: readonly string[];
  command: readonly string[];
}

const work = realpathSync(mkdtempSync(join(tmpdir(), "tradewind-image-")));
const stages = new Map<string, Stage>();
try {
  chmodSync(work, 0o755);
  const last = build(readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8"));
  await runDag(last);
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** @returns The last stage. */
function build(text: string): Stage {
  let stage: Stage | undefined;
  for (const line of text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))) {
    const [, instruction = "", rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    process.stdout.write(`${line}\n`);
    if (instruction === "FROM") stage = newStage(/ AS (\S+)$/.exec(rest)?.[1] ?? "image");
    else if (stage === undefined) throw new Error(`${line}: no FROM before it`);
    else if (instruction === "WORKDIR") stage.folder = owned(inStage(stage, rest));
    else if (instruction === "COPY") copy(stage, rest.split(" "));
    else if (instruction === "RUN") execute(stage, rest);
    else if (instruction === "ENV") Object.assign(stage.env, variables(stage, rest));
    else if (instruction === "ENTRYPOINT") stage.entry = JSON.parse(rest) as string[];
    else if (instruction === "CMD") stage.command = JSON.parse(rest) as string[];
    else if (!["EXPOSE", "USER"].includes(instruction)) throw new Error(`${line}: unknown instruction`);
  }
  if (stage === undefined) throw new Error("deploy/Dockerfile has no FROM");
  return stage;
}

function newStage(name: string): Stage {
  const root = owned(join(work, name));
  const programs = owned(join(root, "usr/local/bin"));
  for (const name of ["chown", "apt-get"])
    writeFileSync(join(programs, name), "#!/bin/sh\n", { mode: 0o755 });
  // What comes with the base image and from Debian.
  cpSync(join(ROOT, "node_modules/node/bin/node"), join(programs, "node"), { dereference: true });
  writeFileSync(join(owned(join(root, "usr/bin")), "tini"), '#!/bin/sh\nshift\nexec "$@"\n', { mode: 0o755 });
  const stage = {
    root,
    folder: root,
    entry: [],
    command: [],
    env: {
      PATH: [programs, join(root, "usr/bin"), process.env.PATH].join(delimiter),
      HOME: owned(join(root, "tmp/home")),
      TMPDIR: owned(join(root, "tmp")),
      ...certificates(),
    },
  };
  stages.set(name, stage);
  return stage;
}

/** For machines whose way to the registry has a CA or address of its own. */
function certificates(): Record<string, string> {
  const given = Object.entries(process.env).filter(([name]) =>
    /^(npm_config_registry|NODE_EXTRA_CA_CERTS|https?_proxy|no_proxy)$/i.test(name),
  );
  const registry = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
  return { npm_config_registry: registry, ...(Object.fromEntries(given) as Record<string, string>) };
}

function inStage({ root, folder }: Stage, path: string): string {
  return path.startsWith("/") ? join(root, path) : join(folder, path);
}

/** Absolute paths of the image become paths of the stage's folder. */
function moved({ root }: Stage, text: string): string {
  return text.replace(/(?<![\w./-])\/(?=(?:opt|srv|usr|var)\/)|(?<![\w./-])\/(?=srv$)/g, `${root}/`);
}

function variables(stage: Stage, text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(" ").map((pair) => {
      const [name = "", value = ""] = pair.split("=");
      return [name, moved(stage, value)];
    }),
  );
}

function owned(folder: string): string {
  mkdirSync(folder, { recursive: true });
  for (let each = folder; isRoot && each.startsWith(`${work}/`); each = dirname(each))
    chownSync(each, UID, UID);
  return folder;
}

function execute(stage: Stage, command: string): void {
  const { env, folder: cwd } = stage;
  execFileSync("sh", ["-ec", moved(stage, command)], { cwd, env, stdio: "inherit", ...account });
}

function copy(stage: Stage, words: readonly string[]): void {
  const from = /^--from=(.+)$/.exec(words[0] ?? "")?.[1];
  const paths = from === undefined ? [...words] : words.slice(1);
  const target = inStage(stage, paths.pop() ?? "");
  for (const path of paths) {
    if (from === undefined)
      copyContext(path, paths.length > 1 || words.at(-1)?.endsWith("/") === true, target);
    else {
      const source = stages.get(from);
      if (source === undefined) throw new Error(`COPY --from=${from}: no such stage`);
      cpSync(inStage(source, path), target, { recursive: true, verbatimSymlinks: true });
    }
  }
  owned(target.endsWith("/") ? target : dirname(target));
  if (isRoot) execFileSync("chown", ["-R", `${UID}:${UID}`, stage.root]);
}

function copyContext(path: string, isInto: boolean, target: string): void {
  const files = context().filter((file) => file === path || path === "." || file.startsWith(`${path}/`));
  if (files.length === 0) throw new Error(`COPY ${path}: not in the build context`);
  const isFile = statSync(join(ROOT, path)).isFile();
  for (const file of files) {
    const place = isFile
      ? isInto
        ? join(target, basename(file))
        : target
      : join(target, relative(path, file));
    mkdirSync(dirname(place), { recursive: true });
    cpSync(join(ROOT, file), place);
  }
}

/** The files that .dockerignore leaves: the last pattern that matches a file or a folder of its path decides. */
function context(): readonly string[] {
  const patterns = readFileSync(join(ROOT, "deploy/Dockerfile.dockerignore"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const tracked = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  return tracked.filter((file) => {
    const parts = file.split("/");
    const paths = parts.map((_, depth) => parts.slice(0, depth + 1).join("/"));
    const last = patterns.findLast((line) => paths.some((path) => matchesGlob(path, line.replace(/^!/, ""))));
    return last === undefined || last.startsWith("!");
  });
}

/** Starts the image's command with a DAG in its DAG folder, until the DAG has run. */
async function runDag(stage: Stage): Promise<void> {
  const { env, folder: cwd } = stage;
  const [program = "", ...fixed] = stage.entry;
  const options = { cwd, env, ...account };
  for (const role of ["scheduler", "api", "triggerer", "dag-processor", "worker", "db"])
    execFileSync(program, [...fixed, role, "--help"], { ...options, stdio: "ignore" });
  if (globSync(join(stage.root, "opt/tradewind/packages/*/src")).length > 0)
    throw new Error("the image has sources");
  cpSync(join(ROOT, "examples/hello.ts"), join(env.TRADEWIND_DAGS ?? "", "hello.ts"));
  const child = spawn(program, [...fixed, ...stage.command, "--port", "0"], {
    ...options,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  const ended = once(child, "exit") as Promise<[number | null]>;
  const succeeded = new Promise<boolean>((resolve) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (/✓ hello .*success/.test(output)) resolve(true);
    });
    child.once("exit", () => resolve(false));
  });
  const hasRun = await succeeded;
  child.kill("SIGTERM");
  const [code] = await ended;
  if (!hasRun || code !== 0) throw new Error(`the image's command ended with code ${code}:\n${output}`);
  process.stdout.write("The image's command has run a DAG and has stopped.\n");
}
