/**
 * The lifecycle of one running trigger:
 *
 *   load → start → next → event ──ack──→ next → … → done, ending, failed
 *
 * It ends exactly once (`#end`), and its cleanup runs exactly once, after its code has stopped or the time to stop has
 * expired. All of its code runs in its scope.
 */
import { errorFacts } from "@tradewind/sdk/error-facts";
import type { Json } from "@tradewind/sdk/manifest";
import type {
  ConnectionFacts,
  LogLevel,
  RunningTrigger,
  TriggerAbortKind,
  TriggerProgram,
  TriggerYield,
} from "@tradewind/sdk/program";
import type { BuiltinHost } from "../../builtin/builtin-kind.ts";
import { isTooDeep } from "../../child/json-lines.ts";
import { withHint } from "../../code/error-hints.ts";
import type { TriggerOutcome } from "../../model/index.ts";
import { ALL_KIND } from "../../model/signal/joint-wait.ts";
import {
  type Assignment,
  isEnding,
  MAX_EVENT_BYTES,
  MAX_KEY_LENGTH,
  type TriggerQuestion,
} from "../process/runner-protocol.ts";
import { abortReason } from "./abort-reason.ts";
import type { IgnoredAbort } from "./abort-watch.ts";
import type { EventGate } from "./event-gate.ts";
import { withoutEvent } from "./joint-wait.ts";
import { print } from "./output.ts";
import type { Places } from "./places.ts";
import type { ReportLine } from "./report-line.ts";
import { inScope } from "./scope.ts";
import type { Asker } from "./trigger-programs.ts";

/** What the process provides to its triggers. */
export interface Surroundings {
  readonly line: ReportLine;
  readonly places: Places;
  readonly questions: Places;
  readonly gate: EventGate;
  find(kind: string, bundlePath: string | null, asker: Asker): Promise<TriggerProgram>;
  request(serial: number, question: TriggerQuestion): Promise<Json | undefined>;
  /** It has ended and cleaned up. */
  over(life: TriggerLifecycle): void;
}

/** How long aborted code may take before cleanup is called regardless. */
const STOP_MS = 1_000;
/** Characters of an error's message, and of its stack. */
const MAX_ERROR_LENGTH = 64 * 1024;
/** Concurrent requests of one trigger. */
const MAX_QUESTIONS = 16;
const MAX_NAME_LENGTH = 1_000;
const MAX_SHOWN_ARGS = 500;

export class TriggerLifecycle implements Asker {
  readonly who: number;
  readonly bundlePath: string | null;
  readonly #assignment: Assignment;
  readonly #around: Surroundings;
  readonly #abort = new AbortController();
  #running: RunningTrigger | null = null;
  #acknowledge: (() => void) | null = null;
  #hasFired: boolean;
  #ended = false;
  #left = false;
  #late: NodeJS.Timeout | null = null;

  constructor(assignment: Assignment, around: Surroundings) {
    this.who = assignment.serial;
    this.bundlePath = assignment.bundlePath;
    this.#hasFired = assignment.hasFired;
    this.#assignment = assignment;
    this.#around = around;
  }

  begin(): void {
    void inScope(this, () => this.#live());
  }

  /** Its last event is stored. */
  ack(): void {
    this.#acknowledge?.();
    this.#acknowledge = null;
  }

  /** This process no longer runs it. */
  stop(why: TriggerAbortKind): void {
    this.#end(null, abortReason(why));
  }

  /** An error that its code threw where no caller could catch it. */
  fail(thrown: unknown): void {
    const { code, message, name, stack } = withHint(errorFacts(thrown), this.bundlePath);
    const error = {
      name: cut(name),
      message: cut(message),
      stack: stack && cut(stack),
      code: code && cut(code),
    };
    this.#end({ kind: "failed", error }, thrown);
  }

  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void {
    if (!this.#ended) this.#around.line.log(this.who, level, message, fields);
    // It has no waiters any more: an error at its end is for the operator.
    else if (level === "error") print(2, `trigger "${this.#assignment.kind}", at its end: ${message}\n`);
  }

  ignoredAbort({ args, kind, ms }: IgnoredAbort): void {
    const shown = JSON.stringify(args).slice(0, MAX_SHOWN_ARGS);
    this.#around.line.send({ k: "ignoredAbort", id: this.#assignment.id, kind, args: shown, ms });
  }

  async #live(): Promise<void> {
    try {
      const { kind, bundlePath, args } = this.#assignment;
      const program = await this.#around.find(kind, bundlePath, this);
      if (!this.#ended) this.#running = await program.start(args, this.#host());
      while (!this.#ended && this.#running !== null) await this.#step(await this.#running.next());
    } catch (error) {
      this.fail(error);
    }
    await this.#leave();
  }

  async #step(yielded: TriggerYield): Promise<void> {
    if (this.#ended) return;
    if (yielded.kind === "event") {
      const { payload, key } = yielded;
      await this.#fire(payload, typeof key === "string" ? key : null);
    } else if (yielded.kind === "ending" && isEnding(yielded.ending)) {
      checkSize(yielded.ending.kind === "success" ? yielded.ending.output : yielded.ending.reason);
      this.#end({ kind: "ending", ending: yielded.ending });
    } else if (yielded.kind === "done") {
      if (!this.#hasFired) throw withoutEvent();
      this.#end(null);
      this.#around.line.send({ k: "done", serial: this.who });
    } else {
      const message = "The trigger yielded something that this engine does not support; upgrade the engine.";
      throw Object.assign(new Error(message), { code: "BUNDLE_PROTOCOL" });
    }
  }

  async #fire(payload: Json, key: string | null): Promise<void> {
    const bytes = checkSize(payload);
    if (key !== null && key.length > MAX_KEY_LENGTH) {
      const message = `The key of the trigger's event has ${key.length} characters; ${MAX_KEY_LENGTH} is the limit.`;
      throw Object.assign(new Error(message), { code: "TW_EVENT_TOO_LARGE" });
    }
    // The supervisor may have to keep the event of a wait for all for a long time, until its own members have fired.
    const isCounted = this.#assignment.kind !== ALL_KIND;
    const leave = await this.#around.gate.enter(isCounted ? bytes : 0, this.#abort.signal);
    try {
      if (this.#ended) return;
      this.#hasFired = true;
      const stored = new Promise<void>((resolve) => {
        this.#acknowledge = resolve;
      });
      this.#report({ kind: "event", payload, key });
      await stored;
    } finally {
      leave();
    }
  }

  /** The first end counts. `reason` is the abort reason for code that is still running. */
  #end(outcome: TriggerOutcome | null, reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    if (outcome !== null) this.#report(outcome);
    this.#late = setTimeout(() => void this.#leave(), STOP_MS);
    inScope(this, () => this.#abort.abort(reason ?? abortReason("fired")));
    this.ack();
  }

  async #leave(): Promise<void> {
    if (this.#left) return;
    this.#left = true;
    if (this.#late !== null) clearTimeout(this.#late);
    try {
      await inScope(this, () => this.#running?.cleanup());
    } catch (error) {
      const { stack, message } = errorFacts(error);
      this.log("error", stack ?? message);
    }
    this.#around.over(this);
  }

  #report(outcome: TriggerOutcome): void {
    this.#around.line.send({ k: "outcome", serial: this.who, outcome });
  }

  #host(): BuiltinHost {
    const signal = this.#abort.signal;
    const { line, places } = this.#around;
    const { lastEvent } = this.#assignment;
    return {
      ...(lastEvent !== undefined && { lastEvent }),
      abort: signal,
      log: (level, message, fields) => this.log(level, String(message), fields),
      variable: async (key) =>
        (await this.#request({ what: "variable", key: String(key) })) as string | undefined,
      connection: async (id) =>
        (await this.#request({ what: "connection", connectionId: String(id) })) as
          | ConnectionFacts
          | undefined,
      polled: () => {
        if (!this.#ended) line.polled(this.who);
      },
      ceased: () => {
        if (!this.#ended) line.send({ k: "ceased", serial: this.who });
      },
      members: (fired) => {
        if (!this.#ended) line.send({ k: "members", serial: this.who, fired });
      },
      limited: (key, limit, work) => places.within(key, limit, signal, work),
    };
  }

  #request(question: TriggerQuestion): Promise<Json | undefined> {
    if (this.#ended) return Promise.reject(new Error("the trigger has ended"));
    const name = question.what === "variable" ? question.key : question.connectionId;
    if (name.length > MAX_NAME_LENGTH) return Promise.resolve(undefined);
    const { request: ask, questions } = this.#around;
    return questions.within(`${this.who}`, MAX_QUESTIONS, this.#abort.signal, () => ask(this.who, question));
  }
}

function cut(text: string): string {
  return text.length > MAX_ERROR_LENGTH ? `${text.slice(0, MAX_ERROR_LENGTH)}…` : text;
}

/** Rejects an event that cannot be sent or is too large to be read in one piece. Returns its size. */
function checkSize(payload: Json): number {
  let text: string | undefined;
  let reason = "it is undefined, a function or a symbol";
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    reason = errorFacts(error).message;
  }
  if (text !== undefined && isTooDeep(text)) {
    text = undefined;
    reason = "it is nested too deeply";
  }
  if (text === undefined) {
    const message = `The trigger's event is not JSON: ${reason}. Yield plain data.`;
    throw Object.assign(new Error(message), { code: "TW_EVENT_NOT_JSON" });
  }
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_EVENT_BYTES) return bytes;
  const message = `The trigger's event is ${bytes} bytes of JSON; ${MAX_EVENT_BYTES} is the limit. Store it elsewhere and yield where it is.`;
  throw Object.assign(new Error(message), { code: "TW_EVENT_TOO_LARGE" });
}
