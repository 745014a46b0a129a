/**
 * Source locations as `dags/lib/load.ts:12:5`: relative to the current folder if the file is inside it, so that a terminal or an
 * editor can open it. Logs name files by `dags:/` and import errors by their path in the DAG folder, because another machine may
 * have written them. A file that is not on this machine keeps its path in the DAG folder.
 */
import { existsSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { readStandalone } from "../client/target.ts";
import type { Session } from "../session.ts";

const FRAME = /^\s+at /;
/** The function that calls user code: frames below it belong to the engine. */
const BORDER = "tradewindCallsUserCode";
/** Bundled code that no source map covers, and Node's own. */
const ENGINE_FRAME =
  /\/(?:chunk-[0-9a-f]+\.mjs|task-runner-[0-9a-f]+\/main\.mjs|tradewind-test-\w+\/dag\.mjs):\d+:\d+\)?$|\bnode:internal\//;

const IN_BUNDLE = /\bdags:\/([^\s():]+)(?=:\d+:\d+)/g;
const ON_MACHINE = /(^\s+at (?:.* \()?)((?:file:\/\/)?\/[^():]+)(?=:\d+:\d+\)?$)/gm;
const IN_IMPORT_ERROR = /(^|^\s+at (?:.* )?\()([^\s():]+)(?=:\d+:\d+(?:\)$|: ))/gm;

export class SourcePaths {
  readonly #folders: readonly string[];
  readonly #known = new Map<string, string>();

  /** @param folders DAG folders, the most likely one first. */
  constructor(folders: readonly string[]) {
    this.#folders = folders.map((folder) => resolve(folder));
  }

  /** The DAG folders of the standalone and of the current project. */
  static of({ home, host }: Pick<Session, "home" | "host">): SourcePaths {
    const running = readStandalone(home)?.dags;
    return new SourcePaths([...(running ? [running] : []), host.env.TRADEWIND_DAGS || "dags"]);
  }

  /** Replaces locations in a log or stack. */
  inText(text: string): string {
    return text
      .replace(IN_BUNDLE, (_, file: string) => this.file(file))
      .replace(ON_MACHINE, (_, before: string, path: string) => before + this.file(path));
  }

  inImportError(text: string): string {
    return text.replace(IN_IMPORT_ERROR, (_, before: string, file: string) => before + this.file(file));
  }

  /** Accepts a path in the DAG folder, an absolute path or a file URL. */
  file(name: string): string {
    const known = this.#known.get(name) ?? this.#find(name);
    this.#known.set(name, known);
    return known;
  }

  #find(name: string): string {
    const path = name.startsWith("file://") ? fileURLToPath(name) : name;
    if (isAbsolute(path)) return fromHere(path);
    const found = this.#folders.map((folder) => resolve(folder, path)).find((each) => existsSync(each));
    return found === undefined ? path : fromHere(found);
  }
}

function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith(`..${sep}`) || isAbsolute(short) ? path : short;
}

/** Drops frames of the engine and of Node, which do not help to debug user code. One filter per stream of lines. */
export class FrameFilter {
  readonly #testing: string | null;
  #isBelow = false;

  /** @param isTest The callers include the runner of `dags test`. */
  constructor({ isTest }: { readonly isTest: boolean } = { isTest: false }) {
    this.#testing = isTest ? dirname(import.meta.resolve("@tradewind/testing")) : null;
  }

  isShown(line: string): boolean {
    if (!FRAME.test(line)) {
      this.#isBelow = false;
      return true;
    }
    this.#isBelow ||= line.includes(BORDER);
    if (this.#isBelow || ENGINE_FRAME.test(line)) return false;
    return this.#testing === null || !line.includes(`${this.#testing}/`);
  }
}
