/**
 * Which files of the DAG folder are DAG files. A file counts if its text imports the SDK; all others are local imports
 * of a DAG file, or unrelated.
 */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { EngineError, messageOf } from "../service/errors.ts";
import type { DagFile } from "./bundler/protocol.ts";
import { type IgnoreRules, parseIgnore } from "./ignore-rules.ts";

/** A DAG file with the stamp of the text that was checked. */
export interface FoundFile extends DagFile {
  readonly mtimeMs: number;
  readonly size: number;
}

export interface FolderScan {
  readonly files: readonly FoundFile[];
  /** All folders that were scanned: changes elsewhere do not matter. */
  readonly folders: readonly string[];
}

const IGNORE_FILE = ".tradewindignore";
const CODE = /\.[cm]?[jt]s$/;
const NOT_DAGS = /(?:\.test\.[^.]+|\.spec\.[^.]+|\.d\.[cm]?ts)$/;
const NAMES_SDK = /(?:from|import|require)\s*\(?\s*["'`](?:tradewind|@tradewind\/[\w-]+)(?:\/[^"'`]*)?["'`]/;

/** True for the name of a code file: `.ts`, `.js` and their module and CommonJS forms. */
export function isCodeFile(name: string): boolean {
  return CODE.test(name);
}

export class DagFolder {
  readonly path: string;
  /** Results by path, so that an unchanged file is not read again. */
  #verdicts = new Map<string, { mtimeMs: number; size: number; isDag: boolean }>();

  constructor(path: string) {
    this.path = path;
  }

  /** Throws the error of a scan early, before slow work depends on the scan. */
  async requireReadable(): Promise<void> {
    await this.#list(this.path);
  }

  /** Sorted by name. `suspects` are read again even if their stamp did not change. */
  async scan(suspects: ReadonlySet<string> = new Set()): Promise<FolderScan> {
    const rules = await this.#rules();
    const folders: string[] = [];
    const candidates: DagFile[] = [];
    await this.#walk({ folder: this.path, prefix: "", rules, folders, candidates, seen: new Set() });
    const verdicts = new Map<string, { mtimeMs: number; size: number; isDag: boolean }>();
    const found = await Promise.all(
      candidates.map(async ({ file, path }): Promise<FoundFile | null> => {
        try {
          const { mtimeMs, size } = await stat(path);
          const last = suspects.has(path) ? undefined : this.#verdicts.get(path);
          const isKnown = last?.mtimeMs === mtimeMs && last.size === size;
          const isDag = isKnown ? last.isDag : NAMES_SDK.test(await readFile(path, "utf8"));
          verdicts.set(path, { mtimeMs, size, isDag });
          return isDag ? { file, path, mtimeMs, size } : null;
        } catch {
          return null; // deleted since the folder was listed
        }
      }),
    );
    this.#verdicts = verdicts;
    const files = found.filter((file) => file !== null).sort((a, b) => (a.file < b.file ? -1 : 1));
    return { files, folders };
  }

  async #rules(): Promise<IgnoreRules> {
    try {
      return parseIgnore(await readFile(join(this.path, IGNORE_FILE), "utf8"));
    } catch {
      return parseIgnore("");
    }
  }

  async #walk(at: Walk): Promise<void> {
    const real = await this.#list(at.folder);
    if (real === null || at.seen.has(real.path)) return; // a link back to a visited folder
    at.seen.add(real.path);
    at.folders.push(at.folder);
    for (const entry of real.entries) {
      const path = join(at.folder, entry.name);
      const file = at.prefix + entry.name;
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      const isFolder = entry.isSymbolicLink() ? await isDirectory(path) : entry.isDirectory();
      if (at.rules.ignores(file, isFolder)) continue;
      if (isFolder) await this.#walk({ ...at, folder: path, prefix: `${file}/` });
      else if (isCodeFile(entry.name) && !NOT_DAGS.test(entry.name)) at.candidates.push({ file, path });
    }
  }

  /** The DAG folder itself must exist: an unmounted disk must not remove every DAG. */
  async #list(folder: string) {
    try {
      const [entries, path] = await Promise.all([readdir(folder, { withFileTypes: true }), realpath(folder)]);
      return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), path };
    } catch (error) {
      if (folder !== this.path) return null;
      throw new EngineError(
        "DAG_FOLDER_UNREADABLE",
        `The DAG folder ${folder} cannot be read (${messageOf(error)}): create it, or name another with --dags.`,
        { cause: error },
      );
    }
  }
}

interface Walk {
  readonly folder: string;
  readonly prefix: string;
  readonly rules: IgnoreRules;
  readonly folders: string[];
  readonly candidates: DagFile[];
  readonly seen: Set<string>;
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
