/**
 * The process in which user code runs. It receives one assignment at a time from its supervisor, runs it, reports its end,
 * and waits for the next. It has no credentials and no connection but that to its supervisor; when the supervisor exits,
 * it kills itself and its descendants. It sends exactly one `ended` per assignment unless it dies, which the supervisor
 * sees.
 */
import { Socket } from "node:net";
import { errorFacts } from "@tradewind/sdk/error-facts";
import type { ErrorFacts, Program } from "@tradewind/sdk/program";
import { JsonLines } from "../../child/json-lines.ts";
import { withHint } from "../../code/error-hints.ts";
import { loadedProgram, loadPrograms, triggerIn } from "../../code/loader/programs.ts";
import {
  CHANNEL_FD,
  type EndedMessage,
  type FromChild,
  type JobMessage,
  type JobOutcome,
  type ToChild,
} from "../attempt/protocol.ts";
import { AttemptHost, watchCombinedSignals } from "./attempt-host.ts";
import { Cleanliness } from "./cleanliness.ts";
import { LargeValues, limitsOf, piecesOf, sizeUp } from "./large-values.ts";
import { OpenWorkTracker } from "./open-work.ts";
import { OutputCapture } from "./output-capture.ts";
import { TaskEnvironment } from "./task-environment.ts";

const socket = new Socket({ fd: CHANNEL_FD });
const channel = new JsonLines<FromChild>(socket, {
  message: (raw) => receive(raw as ToChild),
  broken: endAll,
});
const output = new OutputCapture();
const limits = limitsOf(process.argv);
const large = new LargeValues();
let current: { readonly host: AttemptHost; readonly kind: JobMessage["k"]; readonly bundle: string } | null =
  null;

process.setSourceMapsEnabled(true);
output.install();
watchCombinedSignals();
const work = OpenWorkTracker.installed();
// Before `Cleanliness`: changes made by TaskEnvironment are restored by it and must not count as leftovers.
const environment = new TaskEnvironment(process.env);
const cleanliness = new Cleanliness();

socket.on("close", endAll);
process.on("uncaughtException", (error) => crash(errorFacts(error), error));
process.on("unhandledRejection", (error) => crash(errorFacts(error), error));
process.on("beforeExit", neverSettled);
cleanliness.accept();
send({ k: "ready" });

function receive(message: ToChild): void {
  if (message.k === "run" || message.k === "callback" || message.k === "react") void perform(message);
  else if (message.k === "abort") {
    if (current?.host.id === message.id) current.host.interrupt(message.why, message.reason);
  } else if (message.k === "piece") large.add(message.slot, message.text);
  else if (message.k === "reply") {
    if (current === null) large.drop(message);
    else current.host.answer(message.n, large.within(message));
  } else process.exit(0);
}

async function perform(message: JobMessage): Promise<void> {
  const signals = message.k === "run" ? message.signals : undefined;
  const host = new AttemptHost(message.id, { send, output, work, environment, await: holdOpen }, signals);
  current = { host, kind: message.k, bundle: message.bundle };
  output.begin(message.logLimit);
  holdOpen(false);
  let outcome: JobOutcome;
  try {
    const dagId = message.call.run.dagId;
    const program = loadedProgram(message.bundle, dagId) ?? (await importProgram(message.bundle, dagId));
    outcome = await work.run(host, () => asked(program, large.within(message), host));
  } catch (error) {
    // A program never rejects: the bundle could not be loaded, or violates the protocol.
    finish(host, failure(message.k, errorFacts(error)), { unclean: "could not load or run the bundle" });
    return;
  }
  // One turn: an unhandled rejection is emitted now, and handles that are being closed get closed.
  await new Promise((resolve) => setImmediate(resolve));
  if (current?.host !== host) return;
  holdOpen(true);
  await conclude(host, outcome);
}

/** Sends a large output before the end, piece by piece, each after the previous one is written to the channel. */
async function conclude(host: AttemptHost, outcome: JobOutcome): Promise<void> {
  const sized = sizeUp(outcome, limits);
  const unclean = work.hasOpen(host) ? "left work open" : cleanliness.leftover();
  if (sized.text === null) return finish(host, sized.outcome, { unclean });
  for (const text of piecesOf(sized.text)) {
    if (current?.host !== host) return;
    await new Promise<void>((resolve) => send({ k: "piece", id: host.id, text }, resolve));
  }
  finish(host, sized.outcome, { unclean, large: true });
}

async function asked(program: Program, message: JobMessage, host: AttemptHost): Promise<JobOutcome> {
  switch (message.k) {
    case "run":
      return await program.run({ ...message.call, host, maxOutputBytes: limits.most });
    case "callback":
      return await program.callback({
        ...message.call,
        host,
        trigger: (kind) => triggerIn(message.bundle, kind),
      });
    case "react":
      if (program.react === undefined) return { ok: true, action: "NONE" };
      return await program.react({ ...message.call, host });
  }
}

async function importProgram(path: string, dagId: string) {
  const programs = await loadPrograms(path);
  const program = programs.get(dagId);
  if (program === undefined) {
    const found = [...programs.keys()].map((id) => `"${id}"`).join(", ") || "none";
    throw Object.assign(new Error(`The bundle has no DAG "${dagId}" (found: ${found}).`), {
      code: "BUNDLE_WITHOUT_DAG",
    });
  }
  holdOpen(true);
  cleanliness.accept();
  holdOpen(false);
  return program;
}

function finish(
  host: AttemptHost,
  outcome: JobOutcome,
  { crashed = false, large, unclean }: Pick<EndedMessage, "unclean" | "large"> & { crashed?: boolean },
): void {
  if (current?.host !== host) return;
  const { bundle, kind } = current;
  current = null;
  host.end();
  const env = environment.restore();
  holdOpen(true);
  const ended = (value: JobOutcome, why: string | null): EndedMessage => ({
    k: "ended",
    id: host.id,
    outcome: value,
    logged: output.written,
    dropped: output.dropped,
    aborted: host.aborted,
    unclean: why,
    ...(large && { large }),
    ...(env.length > 0 && { env }),
  });
  const exit = crashed ? () => process.exit(1) : undefined;
  try {
    send(ended(hinted(outcome, bundle), unclean), exit);
  } catch (error) {
    const facts = { ...errorFacts(error), code: "TASK_OUTPUT_NOT_JSON" };
    send(ended(failure(kind, facts, false), unclean ?? "output is not JSON"), exit);
  }
}

/** An error outside the promise of the program: the state of this process is undefined. */
function crash(facts: ErrorFacts, error: unknown): void {
  if (current === null) {
    console.error("Uncaught in a task process without a task:", error);
    process.exit(1);
  }
  finish(current.host, failure(current.kind, facts), { unclean: "uncaught error", crashed: true });
}

/** The event loop is empty and the task has not ended: its promise can never settle. */
function neverSettled(): void {
  if (current === null) return;
  if (current.host.abortAwaited) {
    holdOpen(true);
    return;
  }
  const message =
    "The task waits for a promise that nothing can settle any more: no timer, no connection, no request is open.";
  finish(
    current.host,
    failure(current.kind, { name: "Error", message, stack: null, code: "TASK_NEVER_SETTLED" }),
    { unclean: "never settled", crashed: true },
  );
}

function hinted(outcome: JobOutcome, bundle: string): JobOutcome {
  return "error" in outcome && outcome.error
    ? { ...outcome, error: withHint(outcome.error, bundle) }
    : outcome;
}

function failure(kind: JobMessage["k"], error: ErrorFacts, retry = true): JobOutcome {
  return kind === "run" ? { kind: "failed", error, retry } : { ok: false, error };
}

function send(message: FromChild, done?: () => void): void {
  channel.send(message, done);
}

/** The supervisor has exited: kills this process and its descendants. */
function endAll(): void {
  process.kill(-process.pid, "SIGKILL");
}

/** Whether the channel keeps the process alive: always between tasks, during a task only while a request is open. */
function holdOpen(open: boolean): void {
  if (open) socket.ref();
  else socket.unref();
}
