/**
 * The programs of the Kubernetes tests: kube-apiserver, etcd, kwok and helm. They are in the folder KUBEBUILDER_ASSETS, or
 * are built once from their Go modules into .cache/kubernetes, which `npm install` does not touch. The versions are in
 * modules/<name>/go.mod.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { acquireProcessLock } from "../../src/service/process-lock.ts";

export interface ControlPlane {
  readonly apiserver: string;
  readonly etcd: string;
}

const MODULES = join(import.meta.dirname, "modules");
const CACHE = resolve(import.meta.dirname, "../../../../.cache/kubernetes");
const BUILD_TIMEOUT_MS = 45 * 60_000;

const PROGRAMS = {
  "kube-apiserver": { module: "control-plane", main: "k8s.io/kubernetes/cmd/kube-apiserver" },
  etcd: { module: "control-plane", main: "go.etcd.io/etcd/server/v3" },
  kwok: { module: "kwok", main: "sigs.k8s.io/kwok/cmd/kwok" },
  helm: { module: "helm", main: "helm.sh/helm/v4/cmd/helm" },
} as const;

type Program = keyof typeof PROGRAMS;

export async function controlPlane(cache?: string): Promise<ControlPlane> {
  return { apiserver: await binary("kube-apiserver", cache), etcd: await binary("etcd", cache) };
}

/** A fake kubelet for thousands of pods. */
export function kwokBinary(cache?: string): Promise<string> {
  return binary("kwok", cache);
}

/** Lints, renders and installs the chart. */
export function helmBinary(cache?: string): Promise<string> {
  return binary("helm", cache);
}

async function binary(program: Program, cache = CACHE): Promise<string> {
  const assets = process.env.KUBEBUILDER_ASSETS;
  const given = assets === undefined ? undefined : join(assets, program);
  if (given !== undefined && existsSync(given)) return given;
  const path = join(cache, program);
  if ((await builtFrom(path)) !== (await source(program))) await build(program, path);
  return path;
}

/** The source of an existing binary, written after it: without it, the binary may be incomplete. */
function builtFrom(path: string): Promise<string | undefined> {
  return readFile(`${path}.source`, "utf8").catch(() => undefined);
}

async function source(program: Program): Promise<string> {
  const hash = createHash("sha256");
  const { module, main } = PROGRAMS[program];
  for (const file of ["go.mod", "go.sum"]) hash.update(await readFile(join(MODULES, module, file)));
  return hash.update(main).digest("hex");
}

async function build(program: Program, path: string): Promise<void> {
  await mkdir(resolve(path, ".."), { recursive: true });
  const taken = await acquireProcessLock(`${path}.lock`, BUILD_TIMEOUT_MS);
  if ("holder" in taken)
    throw new Error(`process ${taken.holder.pid} has been building ${program} for too long`);
  const work = await mkdtemp(`${path}-`);
  try {
    const wanted = await source(program);
    if ((await builtFrom(path)) === wanted) return;
    await rm(`${path}.source`, { force: true });
    console.log(`building ${program}, once: this takes some minutes`);
    await compile(program, join(work, program));
    await rename(join(work, program), path);
    await writeFile(`${path}.source`, wanted);
  } finally {
    await rm(work, { recursive: true, force: true });
    await taken.lock.release();
  }
}

async function compile(program: Program, output: string): Promise<void> {
  const { module, main } = PROGRAMS[program];
  const flags = [
    "-p",
    "2",
    "-trimpath",
    "-buildvcs=false",
    "-mod=readonly",
    "-ldflags",
    await linkerFlags(program),
  ];
  const go = findGo(program);
  try {
    // Other work has priority: a build takes minutes of all cores.
    await promisify(execFile)("nice", ["-n", "10", go, "build", ...flags, "-o", output, main], {
      cwd: join(MODULES, module),
      env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "", GOWORK: "off" },
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: 64 * 2 ** 20,
    });
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    const reason = stderr.trim().split("\n").slice(-10).join("\n") || (error as Error).message;
    throw new Error(`${program} could not be built.\n${reason}\n${remedy(program)}`);
  }
}

/** kube-apiserver learns its version from the linker; without these flags it reports v0.0.0. */
async function linkerFlags(program: Program): Promise<string> {
  if (program !== "kube-apiserver") return "-s -w";
  const requirements = await readFile(join(MODULES, PROGRAMS[program].module, "go.mod"), "utf8");
  const [, version, major, minor] = /k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\S+)/.exec(requirements) ?? [];
  const facts = Object.entries({ gitVersion: version, gitMajor: major, gitMinor: minor });
  return `-s -w ${facts.map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`).join(" ")}`;
}

function findGo(program: Program): string {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const go = folders.map((folder) => join(folder, "go")).find((path) => existsSync(path));
  if (go === undefined)
    throw new Error(`${program} is missing, and so is Go to build it. ${remedy(program)}`);
  return go;
}

function remedy(program: Program): string {
  return `Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that contains ${program}.`;
}
