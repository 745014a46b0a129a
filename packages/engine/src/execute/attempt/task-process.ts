/**
 * The supervisor of one task-runner child.
 *
 *   starting ──ready──→ idle ──run──→ busy ──ended──→ settling ──→ idle
 *       └───────────────┴──────────────┴── exit, retire ───────────────→ gone
 *
 * The child leads its own process group, so that a kill reaches its descendants. While it is busy, exactly one of two
 * events ends the job: the child's `ended` message, or the exit of the process. "settling": the child has reported, but
 * the last bytes of its output are still in other pipes; the job ends when they are in its log.
 */
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { durationText } from "@tradewind/sdk/wording";
import { JsonLines } from "../../child/json-lines.ts";
import { MemoryWatch } from "../../child/memory-watch.ts";
import { FrameReader } from "../../log/log-frame.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { ChildEnd } from "./child-end.ts";
import { Deadline } from "./deadline.ts";
import { announce, type Interference, isGraceful, overruled } from "./interference.ts";
import type { Job } from "./job.ts";
import { LargeTransfer, withoutInputs } from "./large-transfer.ts";
import {
  CHANNEL_FD,
  type EndedMessage,
  failureText,
  LOG_FD,
  misunderstood,
  readFromChild,
  type ToChild,
} from "./protocol.ts";
import { type ChildOptions, startChild } from "./task-child.ts";

export interface TaskProcessOptions extends ChildOptions {
  /** Default grace period. */
  readonly graceMs: number;
  readonly logger: Logger;
}

/** `ready` is called at most once per process, `jobEnded` once per job, `gone` once per process. */
export interface TaskProcessListener {
  ready(process: TaskProcess): void;
  /** The process is idle again, unless `unfit` is set. */
  jobEnded(process: TaskProcess, job: Job, end: ChildEnd): void;
  gone(process: TaskProcess, reason: string): void;
}

/** Output that is missing is given up after the pipes have been silent for this long. */
const SILENCE_MS = 250;
const EXIT_MS = 2_000;
const STRAY_LENGTH = 2_000;

export class TaskProcess {
  readonly heapMb: number | null;
  /** By performance.now(). */
  readonly startedAt = performance.now();
  /** Number of jobs so far; 0: no user code has run in this process. */
  jobs = 0;
  /** Hashes of the imported bundles. */
  readonly bundles = new Set<string>();
  /** Why the process must not get another job; null: it may. */
  unfit: string | null = null;
  /** When it last became idle (ms). */
  idleSince = 0;
  readonly #options: TaskProcessOptions;
  readonly #listener: TaskProcessListener;
  readonly #child: ChildProcess;
  readonly #channel: JsonLines<ToChild>;
  readonly #transfer: LargeTransfer;
  readonly #outputs: readonly Readable[];
  readonly #frames: FrameReader;
  readonly #secrets = new Set<string>();
  #job: Job | null = null;
  #report: EndedMessage | null = null;
  #exit: ChildEnd["exit"] = null;
  #interference: Interference | null = null;
  readonly #timeout = new Deadline();
  readonly #kill = new Deadline();
  #silence: NodeJS.Timeout | null = null;
  #memory: MemoryWatch | null = null;
  #settling = false;
  /** The large inputs of the job are being sent: its code has not started. */
  #isProviding = false;
  #held = false;
  /** Output without a job: the only clue if the process does not start. */
  #stray = "";
  #gone = false;

  /** @throws if the system refuses to start a process. */
  constructor(options: TaskProcessOptions, listener: TaskProcessListener) {
    this.#options = options;
    this.#listener = listener;
    this.heapMb = options.heapMb;
    this.#child = startChild(options);
    // First: this event reports a refused start, in which case the pipes below do not exist.
    this.#child.on("error", (error) => this.#failed(error));
    const [, stdout, stderr] = this.#child.stdio;
    const pipe = this.#child.stdio[LOG_FD] as Readable;
    this.#frames = new FrameReader((frame) => this.#job?.log.frame(frame));
    const socket = this.#child.stdio[CHANNEL_FD] as Socket;
    this.#channel = new JsonLines(socket, {
      message: (raw) => this.#message(raw),
      broken: (reason) => this.#distrust(`sent ${reason}`, true),
    });
    this.#transfer = new LargeTransfer({
      socket,
      send: (message, done) => this.#channel.send(message, done),
      isWanted: (job) => this.#job === job && this.#exit === null,
    });
    this.#outputs = [stdout as Readable, stderr as Readable, pipe];
    (stdout as Readable).on("data", (bytes: Buffer) => this.#raw("stdout", bytes));
    (stderr as Readable).on("data", (bytes: Buffer) => this.#raw("stderr", bytes));
    pipe.on("data", (bytes: Buffer) => this.#frameBytes(bytes));
    for (const output of this.#outputs) output.on("error", () => {});
    this.#child.on("exit", (code, signal) => this.#exited(code, signal));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get busy(): boolean {
    return this.#job !== null;
  }

  run(job: Job): void {
    this.#job = job;
    this.#report = null;
    this.#interference = null;
    this.jobs++;
    this.bundles.add(job.bundleHash);
    job.share(this.#secrets);
    job.onPressure = (high) => this.#hold(high);
    const { timeoutMs, memoryMb } = job;
    if (timeoutMs !== null) {
      const limitMs = timeoutMs + job.elapsedMs;
      this.#timeout.within(timeoutMs, () => this.interrupt({ why: "timeout", limitMs }));
    }
    if (memoryMb !== null) {
      this.#memory = new MemoryWatch(this.pid, memoryMb, (usedMb) =>
        this.interrupt({ why: "memory", limitMb: memoryMb, usedMb }),
      );
    }
    if (job.large.length === 0) this.#channel.send(job.message());
    else void this.#provide(job);
  }

  /** Ends the current job early: aborts user code if it is running, then kills the process group. */
  interrupt(interference: Interference): void {
    const job = this.#job;
    if (job === null || this.#report !== null || this.#exit !== null) return;
    const earlier = this.#interference;
    // The job is being ended already.
    if (earlier !== null && interference.why === "timeout") return;
    job.log.engine(isGraceful(interference) ? "info" : "warn", announce(interference));
    // The first reason counts, unless a cancel replaces it.
    if (interference.why === "cancel") this.#interference = overruled(earlier, interference);
    else this.#interference = earlier ?? interference;
    const isAsked = interference.why === "cancel" || interference.why === "timeout";
    if (!isAsked || this.#isProviding) this.#killGroup();
    else this.#requestStop(job, interference, earlier !== null);
  }

  /** Ends the process: an idle and clean one exits by itself, otherwise the whole group is killed. */
  retire(): void {
    if (this.unfit === null) this.unfit = "retired";
    if (this.#gone || this.#exit !== null) return;
    if (this.busy || this.unfit !== "retired") this.#killGroup();
    else {
      this.#channel.send({ k: "exit" });
      this.#kill.within(EXIT_MS, () => this.#killGroup());
    }
  }

  /** @param again The abort was sent before; only the grace period may become shorter. */
  #requestStop(job: Job, asked: Extract<Interference, { why: "cancel" | "timeout" }>, again: boolean): void {
    const isCancel = asked.why === "cancel";
    const graceMs = (isCancel ? asked.graceMs : undefined) ?? this.#options.graceMs;
    const reason = isCancel
      ? asked.reason
      : `${job.subject} exceeded its timeout of ${durationText(asked.limitMs)}`;
    if (!again) this.#channel.send({ k: "abort", id: job.id, why: asked.why, reason });
    this.#kill.within(graceMs, () => {
      job.log.engine(
        "warn",
        `It did not stop within ${durationText(graceMs)}: killing process group ${this.pid}.`,
      );
      this.#killGroup();
    });
  }

  /** Sends large inputs before the job. If one cannot be read, the attempt fails without being started. */
  async #provide(job: Job): Promise<void> {
    this.#isProviding = true;
    try {
      const large = await this.#transfer.send(job, job.large);
      if (this.#job === job && this.#exit === null) this.#channel.send({ ...job.message(), large });
    } catch (error) {
      if (this.#job !== job || this.#exit !== null) return;
      // Some inputs may have been sent.
      this.unfit ??= "got only some of its inputs";
      this.#report = withoutInputs(job, error);
      this.#over();
    } finally {
      this.#isProviding = false;
    }
  }

  #message(raw: unknown): void {
    const message = readFromChild(raw);
    if (message === null) {
      const lost = misunderstood(raw, this.#job?.id);
      this.#distrust("sent an invalid message", lost === "end");
      // The message may come from a newer SDK. Without a reply the task would wait forever.
      if (lost !== null && lost !== "end")
        this.#channel.send({
          k: "reply",
          n: lost.question,
          error: "This engine does not support the request.",
        });
    } else if (message.k === "ready") {
      if (this.jobs === 0) this.#listener.ready(this);
    } else if (message.id !== this.#job?.id || this.#report !== null) {
      this.#distrust(`reported for attempt ${message.id}`);
    } else if (message.k === "request") void this.#answer(this.#job, message.n, message.ask);
    else if (message.k === "piece") this.#transfer.receive(this.#job, message.text);
    else this.#ended(message);
  }

  #ended(message: EndedMessage): void {
    this.#report = message;
    this.#clearTimers();
    if (message.unclean !== null) this.unfit ??= message.unclean;
    this.#finish();
    if (!this.#settling) this.#afterSilence(() => this.#over());
  }

  /** After the report: the job ends when everything that the child wrote before it is in the log. */
  #finish(): void {
    const report = this.#report;
    if (report === null || this.#settling || this.#frames.consumed < report.logged) return;
    this.#settling = true;
    // Bytes written to the raw descriptors before the report are ready in the same turn of the event loop.
    setImmediate(() => this.#over());
  }

  #over(): void {
    const job = this.#job;
    if (job === null) return;
    this.#clearTimers();
    job.log.flush();
    const end: ChildEnd = {
      interference: this.#interference,
      report: this.#report,
      exit: this.#report === null ? this.#exit : null,
      errorTail: this.#report === null ? job.log.errorTail() : [],
    };
    job.onPressure = null;
    this.#job = null;
    this.#settling = false;
    this.#hold(false);
    this.#listener.jobEnded(this, job, end);
    if (this.#exit !== null) this.#leave();
  }

  async #answer(job: Job, n: number, ask: Parameters<Job["answer"]>[0]): Promise<void> {
    try {
      await this.#transfer.reply(job, n, await job.answer(ask));
    } catch (error) {
      const { logger } = this.#options;
      const facts = { attempt: job.id, error: messageOf(error) };
      // An EngineError is passed to user code. The details of other errors (hosts, statements) are for the operator only.
      const said = error instanceof EngineError ? error : { message: failureText(ask) };
      if (said === error) logger.debug("rejected a request of a task", facts);
      else logger.error("request of a task failed", facts);
      const code = "code" in said ? { code: said.code } : {};
      if (this.#job === job) this.#channel.send({ k: "reply", n, error: said.message, ...code });
    }
  }

  #raw(source: "stdout" | "stderr", bytes: Buffer): void {
    if (this.#job !== null) this.#job.log.raw(source, bytes);
    else this.#stray = (this.#stray + bytes.toString("utf8")).slice(-STRAY_LENGTH);
  }

  #frameBytes(bytes: Buffer): void {
    if (!this.#frames.push(bytes)) this.#distrust("wrote to the log pipe");
    if (this.#report !== null) this.#finish();
  }

  /**
   * User code wrote to the engine's channel: the message is ignored, and the process gets no other task. If the channel is
   * unreadable (`isBroken`), the process is killed, because it cannot report the end of its current task either.
   */
  #distrust(what: string, isBroken = false): void {
    this.unfit ??= what;
    this.#options.logger.warn("a task process broke the protocol and will be replaced", {
      pid: this.pid,
      what,
    });
    // Recorded, so that the exit is not attributed to the operating system.
    if (isBroken) this.interrupt({ why: "protocol", what });
    if (isBroken || !this.busy) this.#killGroup();
  }

  #exited(code: number | null, signal: NodeJS.Signals | null): void {
    this.#exit = { code, signal };
    this.unfit ??= "ended";
    this.#clearTimers();
    this.#killGroup();
    if (this.#job === null) {
      this.#leave();
      return;
    }
    const leave = (): void => {
      this.#over();
      this.#leave();
    };
    this.#child.once("close", leave);
    this.#afterSilence(leave);
  }

  #failed(error: Error): void {
    // Also emitted when a signal could not be delivered: then the process is exiting, and `exit` follows.
    if (this.#child.pid !== undefined) return;
    this.#exit = { code: null, signal: null };
    this.unfit ??= messageOf(error);
    this.#leave();
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    for (const output of this.#outputs) output.destroy();
    const how = this.#exit?.signal ?? `exit code ${this.#exit?.code}`;
    this.#listener.gone(this, [this.unfit, how, this.#stray].filter(Boolean).join("; "));
  }

  /** For output that never arrives: another process holds the pipe open, or user code wrote half a frame into it. */
  #afterSilence(done: () => void): void {
    const job = this.#job;
    let heard = -1;
    this.#silence = setInterval(() => {
      const now = this.#outputs.reduce(
        (sum, output) => sum + (output as unknown as { bytesRead: number }).bytesRead,
        0,
      );
      if (this.#job !== job || (now === heard && !this.#held)) {
        this.#clearTimers();
        done();
      }
      heard = now;
    }, SILENCE_MS);
  }

  /** Backpressure: while the disk is behind, the child's writes wait in the pipes. */
  #hold(high: boolean): void {
    if (this.#held === high) return;
    this.#held = high;
    for (const output of this.#outputs) {
      if (high) output.pause();
      else output.resume();
    }
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group has no process any more.
    }
  }

  #clearTimers(): void {
    this.#timeout.clear();
    this.#kill.clear();
    if (this.#silence !== null) clearInterval(this.#silence);
    this.#memory?.stop();
    this.#silence = null;
    this.#memory = null;
  }
}
