/**
 * What each DAG file was made from and what came of it, so that an unchanged file costs a few `stat`s and nothing else.
 *
 * It is a memory, never the truth: it may be lost at any time (files are then bundled again, and give the versions they
 * have), and what it says of a file is believed only where the catalogue agrees. Successes are kept on disk across
 * restarts; failures are not, since what caused them may be over.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { version as esbuildVersion } from "esbuild";
import { ARTEFACT_FORMAT, type InputStamp } from "../code/bundled.ts";
import type { CatalogueFile } from "../store/dag/dag-catalogue.ts";
import type { InputView } from "./input-view.ts";

export interface Remembered {
  readonly inputs: readonly InputStamp[];
  /** When the inputs were last known to be as stamped. */
  readonly verifiedAt: number;
  readonly outcome: Outcome;
}

export type Outcome =
  | {
      readonly kind: "ok";
      readonly hash: string;
      readonly dagIds: readonly string[];
      readonly unexported: readonly string[];
    }
  /** `anyChange`: a change anywhere in the folder may cure it (a missing import, a DAG id that another file holds). */
  | {
      readonly kind: "failed";
      readonly anyChange: boolean;
      readonly retryAt: number;
      readonly delayMs: number;
    }
  /** An input was written while it was read. */
  | { readonly kind: "unsettled" }
  /** It is still being imported; `before`: what had come of it the last time. */
  | { readonly kind: "late"; readonly before: Outcome | null };

/** Artefacts of other tools, or of another format, are no reason to skip a file. */
const MADE_BY = `${ARTEFACT_FORMAT}/${esbuildVersion}/${import.meta.url.endsWith(".ts") ? "source" : "dist"}`;

/** A file that gives less than its author may think. */
export interface ForgetfulFile {
  readonly file: string;
  /** DAGs it makes and does not export; none: it exports no DAG, and no DAG file imports it. */
  readonly unexported: readonly string[];
}

/** The forgetful files of a saved ledger. */
export async function forgetfulFiles(path: string): Promise<ForgetfulFile[]> {
  const saved = await readSaved(path);
  return saved === null ? [] : forgetfulAmong(restored(saved));
}

export class FileLedger {
  readonly #path: string | null;
  readonly #folder: string;
  #files = new Map<string, Remembered>();
  #isDirty = false;

  /** `path`: where it is kept across restarts; null keeps it in memory only. */
  constructor(folder: string, path: string | null) {
    this.#folder = folder;
    this.#path = path;
  }

  get(file: string): Remembered | undefined {
    return this.#files.get(file);
  }

  /** Some file was being written while it was bundled. */
  get hasUnsettled(): boolean {
    return [...this.#files.values()].some(({ outcome }) => outcome.kind === "unsettled");
  }

  files(): string[] {
    return [...this.#files.keys()];
  }

  /** Folders where a change calls for a new bundle: of all inputs but bundled packages and the package.json of the project. */
  inputFolders(): Set<string> {
    const paths = new Set([...this.#files.values()].flatMap(({ inputs }) => inputs.map(({ path }) => path)));
    return new Set([...paths].filter(isWatched).map(dirname));
  }

  forgetful(): ForgetfulFile[] {
    return forgetfulAmong(this.#files);
  }

  remember(file: string, entry: Remembered): void {
    this.#files.set(file, entry);
    this.#isDirty = true;
  }

  forget(file: string): void {
    this.#isDirty = this.#files.delete(file) || this.#isDirty;
  }

  /** True when the inputs of the file are what they were. */
  async isUnchanged(file: string, view: InputView): Promise<boolean> {
    const entry = this.#files.get(file);
    if (!entry || entry.outcome.kind === "unsettled" || entry.inputs.length === 0) return false;
    const verifiedAt = Date.now();
    const inputs = await Promise.all(entry.inputs.map((stamp) => view.same(stamp, entry.verifiedAt)));
    const same = inputs.filter((stamp) => stamp !== null);
    if (same.length < inputs.length) return false;
    const moved = same.some((stamp, index) => stamp !== entry.inputs[index]);
    this.#files.set(file, { inputs: moved ? same : entry.inputs, verifiedAt, outcome: entry.outcome });
    this.#isDirty ||= moved;
    return true;
  }

  /** Reads what an earlier process kept, as far as the catalogue still says the same. */
  async load(catalogue: ReadonlyMap<string, CatalogueFile>): Promise<void> {
    const saved = this.#path === null ? null : await readSaved(this.#path);
    if (saved === null || saved.madeBy !== MADE_BY || saved.folder !== this.#folder) return;
    for (const [file, entry] of restored(saved)) {
      if (this.#files.has(file) || entry.outcome.kind !== "ok") continue;
      if (agrees(catalogue.get(file), entry.outcome.hash, entry.outcome.dagIds)) this.#files.set(file, entry);
    }
  }

  async save(): Promise<void> {
    if (this.#path === null || !this.#isDirty) return;
    this.#isDirty = false;
    const saved: SavedLedger = { madeBy: MADE_BY, folder: this.#folder, stamps: [], files: {} };
    const indexes = new Map<string, number>();
    for (const [file, { inputs, verifiedAt, outcome }] of this.#files) {
      if (outcome.kind !== "ok") continue;
      const indices = inputs.map((stamp) => {
        const key = `${stamp.path}\n${stamp.mtimeMs}\n${stamp.sha256}`;
        const index = indexes.get(key) ?? saved.stamps.push(stamp) - 1;
        indexes.set(key, index);
        return index;
      });
      const { kind: _, ...facts } = outcome;
      saved.files[file] = { ...facts, inputs: indices, verifiedAt };
    }
    const aside = `${this.#path}.${process.pid}`;
    await mkdir(dirname(this.#path), { recursive: true });
    await writeFile(aside, JSON.stringify(saved), { mode: 0o600 });
    await rename(aside, this.#path);
  }
}

async function readSaved(path: string): Promise<SavedLedger | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as SavedLedger;
  } catch {
    return null;
  }
}

function restored(saved: SavedLedger): Map<string, Remembered> {
  const files = new Map<string, Remembered>();
  for (const [file, { inputs, verifiedAt, unexported = [], ...facts }] of Object.entries(saved.files)) {
    const stamps = inputs.map((index) => saved.stamps[index]).filter((stamp) => stamp !== undefined);
    if (stamps.length !== inputs.length) continue;
    files.set(file, { inputs: stamps, verifiedAt, outcome: { kind: "ok", unexported, ...facts } });
  }
  return files;
}

/** npm replaces the package.json of a package that it installs. That of a project lies where anything may be written. */
function isWatched(path: string): boolean {
  return /[\\/]node_modules[\\/]/.test(path) === (basename(path) === "package.json");
}

function forgetfulAmong(files: ReadonlyMap<string, Remembered>): ForgetfulFile[] {
  const forgetful: ForgetfulFile[] = [];
  let imported: Set<string> | undefined;
  for (const [file, { inputs, outcome }] of files) {
    if (outcome.kind !== "ok") continue;
    let isForgetful = outcome.unexported.length > 0;
    if (!isForgetful && outcome.dagIds.length === 0) {
      imported ??= importedPaths(files);
      isForgetful = !imported.has(inputs[0]?.path ?? "");
    }
    if (isForgetful) forgetful.push({ file, unexported: outcome.unexported });
  }
  return forgetful.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** A file's own path comes first among its inputs, those it imports after it. */
function importedPaths(files: ReadonlyMap<string, Remembered>): Set<string> {
  return new Set([...files.values()].flatMap(({ inputs }) => inputs.slice(1).map(({ path }) => path)));
}

interface SavedLedger {
  readonly madeBy: string;
  readonly folder: string;
  readonly stamps: InputStamp[];
  readonly files: Record<string, SavedFile>;
}

interface SavedFile {
  readonly hash: string;
  readonly dagIds: readonly string[];
  /** Left out by earlier versions. */
  readonly unexported?: readonly string[];
  readonly inputs: readonly number[];
  readonly verifiedAt: number;
}

function agrees(known: CatalogueFile | undefined, hash: string, dagIds: readonly string[]): boolean {
  if (known?.error) return false;
  const live = [...(known?.dags ?? [])].filter(([, dag]) => !dag.isStale);
  return live.length === dagIds.length && dagIds.every((id) => known?.dags.get(id)?.bundleHash === hash);
}
