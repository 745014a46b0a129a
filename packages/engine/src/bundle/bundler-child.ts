/**
 * One bundler child, seen from outside. It is in exactly one of three states: working (with files), idle, or gone. Gone
 * is final and always ends in one `onGone` that names the unfinished files and the file it was importing, if any: the
 * child was killed because of its time limit, or died on its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { InputStamp } from "../code/bundled.ts";
import { hintOfService } from "../service/missing-variable.ts";
import { type ProcessUser, userCodeProcess } from "../service/process-user.ts";
import type { BundleResult, BundlerReply, BundlerRequest, DagFile } from "./bundler/protocol.ts";
import { bundlerEnvironment } from "./child-environment.ts";

export interface BundlerChildOptions {
  readonly folder: string;
  readonly outFolder: string;
  readonly importTimeoutMs: number;
  readonly memoryMb: number;
  readonly user: ProcessUser | null;
  /** Created for one file. */
  readonly isAlone: boolean;
  /** An import takes longer than most; it continues. */
  readonly onSlow: (child: BundlerChild, importing: ImportUnderWay) => void;
  readonly onDone: (child: BundlerChild, file: DagFile, result: BundleResult) => void;
  readonly onGone: (child: BundlerChild, left: GoneChild) => void;
  readonly onOutput: (text: string) => void;
}

export interface GoneChild {
  /** Assigned, not answered. */
  readonly undone: readonly DagFile[];
  /** The file that was being imported at that moment. */
  readonly importing: ImportUnderWay | null;
  readonly cause: Cause;
}

/** Why an import failed; `text` continues after "importing this file". */
export interface Cause {
  readonly code: string;
  readonly text: string;
}

export interface ImportUnderWay {
  readonly file: DagFile;
  readonly inputs: readonly InputStamp[];
}

/** esbuild answers in milliseconds; a child that is silent this long without importing anything is broken. */
const SILENCE_MS = 60_000;
/** Most files are imported within milliseconds. */
const PATIENCE_MS = 2_000;
const MAX_OUTPUT = 8_192;
const LAST_WORDS_MS = 200;

export class BundlerChild {
  /** Files it has finished: the first one is processed by a fresh process. */
  answered = 0;
  readonly #options: BundlerChildOptions;
  readonly #process: ChildProcess;
  readonly #assigned = new Map<string, DagFile>();
  #importing: ImportUnderWay | null = null;
  #timer: NodeJS.Timeout | null = null;
  #patience: NodeJS.Timeout | null = null;
  #cause: Cause | null = null;
  #stderr = "";
  #output = 0;
  #gone = false;

  constructor(options: BundlerChildOptions) {
    this.#options = options;
    const self = fileURLToPath(import.meta.url);
    const main = fileURLToPath(new URL(`./bundler/main${extname(self)}`, import.meta.url));
    const conditions = extname(self) === ".ts" ? ["--conditions=source"] : [];
    this.#process = spawn(
      process.execPath,
      [...conditions, "--no-warnings", `--max-old-space-size=${options.memoryMb}`, main],
      {
        cwd: options.folder,
        ...userCodeProcess(bundlerEnvironment(process.env), options.user),
        // A group of its own: processes that a file starts while it is imported end with the child.
        detached: true,
        stdio: ["ignore", "pipe", "pipe", "ipc"],
      },
    );
    this.#process.on("message", (message: BundlerReply) => this.#receive(message));
    this.#process.on("error", (error) => this.#end(`could not be done: ${error.message}`));
    this.#process.on("disconnect", () => this.#kill());
    this.#process.on("exit", (code, signal) => {
      const how = `ended its process (${signal ?? `exit code ${code}`})`;
      // Its last output may still be in the pipe; a process it started may hold that pipe open forever.
      const late = setTimeout(() => this.#end(how), LAST_WORDS_MS);
      this.#process.once("close", () => {
        clearTimeout(late);
        this.#end(how);
      });
    });
    this.#process.stdout?.on("data", (data: Buffer) => this.#print(data));
    this.#process.stderr?.on("data", (data: Buffer) => this.#print(data, true));
    this.#send({ type: "setup", folder: options.folder, outFolder: options.outFolder });
  }

  get assigned(): number {
    return this.#assigned.size;
  }

  get isAlone(): boolean {
    return this.#options.isAlone;
  }

  /** All assigned files but this one, which is being imported: later results for them are ignored. */
  returnQueued(kept: DagFile): DagFile[] {
    const others = [...this.#assigned.values()].filter((file) => file !== kept);
    for (const { file } of others) this.#assigned.delete(file);
    return others;
  }

  bundle(file: DagFile, pass: number): void {
    this.#assigned.set(file.file, file);
    if (this.#importing === null) this.#watch(SILENCE_MS);
    this.#send({ type: "bundle", pass, file: file.file, path: file.path });
  }

  /** Ends the child and all processes it started. Reports nothing for the assigned files. */
  async stop(): Promise<void> {
    this.#assigned.clear();
    this.#unwatch();
    if (this.#gone || this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#kill();
    await ended;
  }

  #send(request: BundlerRequest): void {
    if (this.#process.connected) this.#process.send(request, () => undefined);
  }

  #receive(message: BundlerReply): void {
    if (this.#gone || this.#cause !== null) return;
    if (message.type === "stray") this.#options.onOutput(message.message);
    else if (message.type === "importing") this.#begin(message.file, message.inputs);
    else if (message.type === "done") this.#finish(message.file, message.result);
  }

  #begin(name: string, inputs: readonly InputStamp[]): void {
    const file = this.#assigned.get(name);
    const importing = file ? { file, inputs } : null;
    this.#importing = importing;
    this.#watch(this.#options.importTimeoutMs);
    if (importing) this.#patience = setTimeout(() => this.#options.onSlow(this, importing), PATIENCE_MS);
    this.#patience?.unref();
  }

  #finish(name: string, result: BundleResult): void {
    const file = this.#assigned.get(name);
    if (!file) return;
    this.#assigned.delete(name);
    if (this.#importing?.file === file) this.#importing = null;
    this.answered++;
    if (this.#assigned.size === 0) this.#unwatch();
    // An import that is under way keeps its own time limit.
    else if (this.#importing === null) this.#watch(SILENCE_MS);
    this.#options.onDone(this, file, explained(result));
  }

  #watch(ms: number): void {
    this.#unwatch();
    this.#timer = setTimeout(() => {
      this.#cause = { code: "DAG_IMPORT_TIMEOUT", text: `did not finish within ${ms / 1000} s` };
      this.#kill();
    }, ms);
    this.#timer.unref();
  }

  #unwatch(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#patience) clearTimeout(this.#patience);
    this.#patience = null;
  }

  #kill(): void {
    const { pid } = this.#process;
    if (pid === undefined || this.#gone) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#process.kill("SIGKILL");
    }
  }

  #end(how: string): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#unwatch();
    const cause = this.#cause ?? { code: "DAG_IMPORT_CRASHED", text: this.#explain(how) };
    this.#options.onGone(this, {
      undone: [...this.#assigned.values()],
      importing: this.#importing,
      cause,
    });
  }

  #explain(how: string): string {
    if (this.#stderr.includes("heap out of memory")) {
      return `ran out of memory (its heap is limited to ${this.#options.memoryMb} MB)`;
    }
    const tail = this.#stderr.trim().split("\n").slice(-12).join("\n");
    return tail === "" ? how : `${how}; its last output:\n${tail}\n`;
  }

  /** Always read, so that a file that prints endlessly is stopped by its time limit and not by a full pipe. */
  #print(data: Buffer, isError = false): void {
    const text = data.toString();
    if (isError) this.#stderr = (this.#stderr + text).slice(-MAX_OUTPUT);
    this.#output += text.length;
    if (this.#output <= MAX_OUTPUT) this.#options.onOutput(text.trimEnd());
  }
}

/** Code around the failing line may name unrelated variables. */
const CODE_FRAME = /^ *>? *\d* \|.*$/gm;

function explained(result: BundleResult): BundleResult {
  if (result.kind !== "failed") return result;
  const hint = hintOfService(result.message.replace(CODE_FRAME, ""), "for the DAG processor");
  return hint === null ? result : { ...result, message: `${result.message}\n${hint}` };
}
