/**
 * The inputs of each DAG file and the outcome, so that an unchanged file costs only a few `stat`s.
 *
 * It is a cache: it may be lost at any time (files are then bundled again, and produce the same versions), and an entry
 * counts only where the catalogue agrees. Successes are kept on disk across restarts; failures are not, since their
 * causes may be gone.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { version as esbuildVersion } from "esbuild";
import { ARTEFACT_FORMAT, type InputStamp } from "../code/bundled.ts";
import type { CatalogueFile } from "../store/dag/dag-catalogue.ts";
import type { InputView } from "./input-view.ts";

export interface Remembered {
  readonly inputs: readonly InputStamp[];
  /** When the inputs were last known to match their stamps. */
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

/** Artefacts of other tools, or of another format, do not allow skipping a file. */
const MADE_BY = `${ARTEFACT_FORMAT}/${esbuildVersion}/${import.meta.url.endsWith(".ts") ? "source" : "dist"}`;

/** A file with DAGs that are not exported, or without any. */
export interface ForgetfulFile {
  readonly file: string;
  /** DAGs that it creates and does not export; empty: it exports no DAG, and no DAG file imports it. */
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

  /** True if a file was written while it was bundled. */
  get hasUnsettled(): boolean {
    return [...this.#files.values()].some(({ outcome }) => outcome.kind === "unsettled");
  }

  files(): string[] {
    return [...this.#files.keys()];
  }

  /** Folders in which a change requires a new bundle: of all inputs but bundled packages and the project's package.json. */
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

  /** True if the inputs of the file have not changed. */
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

  /** Reads the ledger of an earlier process, as far as the catalogue agrees. */
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

/** npm replaces the package.json of a package that it installs. A project's package.json is in a folder with unrelated writes. */
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

/** A file's own path comes first among its inputs, its imports after it. */
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
  /** Missing in ledgers of earlier versions. */
  readonly unexported?: readonly string[];
  readonly inputs: readonly number[];
  readonly verifiedAt: number;
}

function agrees(known: CatalogueFile | undefined, hash: string, dagIds: readonly string[]): boolean {
  if (known?.error) return false;
  const live = [...(known?.dags ?? [])].filter(([, dag]) => !dag.isStale);
  return live.length === dagIds.length && dagIds.every((id) => known?.dags.get(id)?.bundleHash === hash);
}
