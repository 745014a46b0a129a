/**
 * Runs user-defined timetables in a child process without credentials that leads a process group of its own.
 *
 * One request at a time, so that the cause of a hang or crash is known. A child that does not answer in time, sends
 * invalid data or ends is killed with all its processes, and the next request gets a new child: no timetable delays
 * another for longer than its own time limit. An idle child is kept for a while, because it has its bundles loaded.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { DueFacts, ErrorFacts } from "@tradewind/sdk/program";
import { childEntries } from "../child/child-entry.ts";
import { JsonLines } from "../child/json-lines.ts";
import { EngineError } from "../service/errors.ts";
import { withMissingVariables } from "../service/missing-variable.ts";
import { type ProcessUser, userCodeProcess } from "../service/process-user.ts";
import { userEnvironment } from "../service/user-environment.ts";
import {
  type DuePiece,
  MAX_ANSWER_LENGTH,
  type PieceQuery,
  readAnswer,
  TIMETABLE_FD,
  type TimetableAsk,
} from "./timetable-protocol.ts";

export interface TimetableProcessOptions {
  /** Time limit of an answer, including the import of the bundle. */
  readonly answerMs?: number;
  readonly idleMs?: number;
  readonly heapMb?: number;
  /** The account it runs as. Default: the account of this process. */
  readonly user?: ProcessUser | null | undefined;
}

const ANSWER_MS = 10_000;
const IDLE_MS = 60_000;
const HEAP_MB = 256;
/** A loaded bundle is never unloaded. */
const ASKS_PER_CHILD = 5_000;
const MAX_LAST_WORDS = 1_000;

/** The answer: a run, or a piece of a list. */
type Answer = { readonly due: DueFacts | null } | { readonly piece: DuePiece };

interface Waiting {
  readonly n: number;
  readonly resolve: (answer: Answer | EngineError) => void;
}

export class TimetableProcess {
  readonly #options: TimetableProcessOptions;
  #child: TimetableChild | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #calls = 0;
  #idle: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: TimetableProcessOptions = {}) {
    this.#options = options;
  }

  /** @throws EngineError with the code of the user's error, or of the failure of its process. */
  async call(question: Omit<TimetableAsk, "n" | "piece">): Promise<DueFacts | null> {
    const answer = await this.#next(question);
    if (!("due" in answer)) throw nonsense("its answer does not match the request");
    return answer.due;
  }

  /** A piece of its runs. @throws as `ask` does. */
  async list(question: Omit<TimetableAsk, "n"> & { readonly piece: PieceQuery }): Promise<DuePiece> {
    const answer = await this.#next(question);
    if (!("piece" in answer)) throw nonsense("its answer does not match the request");
    return answer.piece;
  }

  #next(question: Omit<TimetableAsk, "n">): Promise<Answer> {
    const answer = this.#last.then(() => this.#call(question));
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** The next request goes to a new child: a package that this one has loaded has changed. */
  replaceChild(): void {
    this.#calls = ASKS_PER_CHILD;
  }

  /** Pending requests are rejected. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#drop("the scheduler stops");
    await this.#last;
  }

  async #call(question: Omit<TimetableAsk, "n">): Promise<Answer> {
    if (this.#idle) clearTimeout(this.#idle);
    if (this.#calls >= ASKS_PER_CHILD) this.#drop("it has reached its number of requests");
    const child = await this.#ready();
    const { answerMs = ANSWER_MS, idleMs = IDLE_MS } = this.#options;
    try {
      return await child.call({ ...question, n: ++this.#calls }, answerMs);
    } finally {
      if (child.isGone && this.#child === child) this.#child = null;
      this.#idle = setTimeout(() => this.#drop("it is idle"), idleMs);
      this.#idle.unref();
    }
  }

  async #ready(): Promise<TimetableChild> {
    const { timetableRunner } = await childEntries();
    if (this.#stopped) throw new EngineError("TIMETABLE_CRASHED", "The scheduler stops.");
    if (this.#child === null || this.#child.isGone) {
      this.#child = new TimetableChild(timetableRunner, this.#options);
      this.#calls = 0;
    }
    return this.#child;
  }

  #drop(why: string): void {
    if (this.#idle) clearTimeout(this.#idle);
    this.#child?.kill(why);
    this.#child = null;
  }
}

class TimetableChild {
  isGone = false;
  readonly #process: ChildProcess;
  readonly #channel: JsonLines<TimetableAsk>;
  #waiting: Waiting | null = null;
  #lastWords = "";

  constructor(entry: string, { heapMb = HEAP_MB, user }: TimetableProcessOptions) {
    this.#process = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, entry], {
      ...userCodeProcess(userEnvironment(process.env), user),
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#process.on("error", (error) => this.#leave(error.message));
    this.#process.on("exit", (code, signal) => this.#leave(signal ?? `exit code ${code}`));
    this.#channel = new JsonLines(this.#process.stdio[TIMETABLE_FD] as Socket, {
      message: (raw) => this.#receive(raw),
      broken: (what) => this.#fail("TIMETABLE_NONSENSE", `its process sent ${what}`),
      maxLength: MAX_ANSWER_LENGTH,
    });
    for (const stream of [this.#process.stdout, this.#process.stderr] as Readable[]) {
      stream.setEncoding("utf8");
      // Always read: a class that prints endlessly must be stopped by its time limit, not by a full pipe.
      stream.on("data", (text: string) => {
        this.#lastWords = (this.#lastWords + text).slice(-MAX_LAST_WORDS);
      });
      stream.on("error", () => {});
    }
    this.#process.unref();
  }

  call(question: TimetableAsk, answerMs: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(
          "TIMETABLE_TIMEOUT",
          `it did not answer within ${answerMs / 1000} s; next() must not wait or loop`,
        );
      }, answerMs);
      this.#waiting = {
        n: question.n,
        resolve: (answer) => {
          clearTimeout(timer);
          this.#waiting = null;
          if (answer instanceof EngineError) reject(answer);
          else resolve(answer);
        },
      };
      if (this.isGone) this.#resolve(gone("it ended before the request"));
      else this.#channel.send(question);
    });
  }

  kill(why: string): void {
    this.#resolve(gone(why));
    this.#end();
  }

  #receive(raw: unknown): void {
    const answer = readAnswer(raw);
    if (answer === null || answer.n !== this.#waiting?.n) {
      this.#fail("TIMETABLE_NONSENSE", "its process sent an invalid answer");
      return;
    }
    const { outcome } = answer;
    this.#resolve(outcome.ok ? outcome : threw(outcome.error));
  }

  #fail(code: string, what: string): void {
    this.#resolve(noAnswer(code, what));
    this.#end();
  }

  #leave(how: string): void {
    const words = this.#lastWords.trim();
    this.#resolve(gone(words === "" ? how : `${how}; it printed: ${words}`));
    this.#end();
  }

  #resolve(answer: Answer | EngineError): void {
    this.#waiting?.resolve(answer);
  }

  #end(): void {
    if (this.isGone) return;
    this.isGone = true;
    const { pid } = this.#process;
    try {
      if (pid !== undefined) process.kill(-pid, "SIGKILL");
    } catch {
      // The group has no process left.
    }
    for (const stream of this.#process.stdio) stream?.destroy();
  }
}

function noAnswer(code: string, what: string): EngineError {
  return new EngineError(code, `The timetable has no answer: ${what}.`);
}

function nonsense(what: string): EngineError {
  return noAnswer("TIMETABLE_NONSENSE", what);
}

/** With the code of the author's error, if any. */
function threw({ name, message, code }: ErrorFacts): EngineError {
  const told = withMissingVariables(message, "for the scheduler");
  return code === null ? new EngineError("TIMETABLE_THREW", `${name}: ${told}`) : new EngineError(code, told);
}

function gone(how: string): EngineError {
  return new EngineError("TIMETABLE_CRASHED", `The timetable process ended: ${how}.`);
}
