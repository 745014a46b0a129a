/**
 * The process in which triggers run, thousands in one event loop. It has no credentials and talks only to its
 * supervisor; when the supervisor ends, it ends itself. It keeps no state: after its end every trigger is started again
 * elsewhere, from its arguments.
 *
 * An exit or an uncaught error of a trigger ends only that trigger.
 */
import { Socket } from "node:net";
import { errorFacts } from "@tradewind/sdk/error-facts";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerAbortKind } from "@tradewind/sdk/program";
import { JsonLines } from "../../child/json-lines.ts";
import { type Assignment, CHANNEL_FD, type FromRunner, type ToRunner } from "../process/runner-protocol.ts";
import { EventGate } from "./event-gate.ts";
import { guardExits } from "./exits.ts";
import { captureOutput, print } from "./output.ts";
import { Places } from "./places.ts";
import { startWatchdog } from "./pulse.ts";
import { ReportLine } from "./report-line.ts";
import { currentScope, type Scope } from "./scope.ts";
import { type Surroundings, TriggerLifecycle } from "./trigger-lifecycle.ts";
import { findProgram } from "./trigger-programs.ts";

/** How long starting triggers may keep the loop before other work gets its turn. */
const SLICE_MS = 10;

const lives = new Map<number, TriggerLifecycle>();
const pending = new Map<number, PromiseWithResolvers<Json | undefined>>();
let asked = 0;
let waiting: Assignment[] = [];
let closing = false;

captureOutput();
const exit = guardExits(blame);
const socket = new Socket({ fd: CHANNEL_FD });
const lines = new JsonLines<FromRunner>(socket, {
  message: (raw) => receive(raw as ToRunner),
  broken: endAll,
});
const line = new ReportLine(socket, lines);
const surroundings: Surroundings = {
  line,
  places: new Places(),
  questions: new Places(),
  gate: new EventGate(),
  find: findProgram,
  request(serial, ask) {
    const n = ++asked;
    const answer = Promise.withResolvers<Json | undefined>();
    pending.set(n, answer);
    line.send({ k: "request", serial, n, ask });
    return answer.promise;
  },
  over(life) {
    lives.delete(life.who);
    line.over(life.who);
    if (closing && lives.size === 0) leave();
  },
};

process.setSourceMapsEnabled(true);
socket.on("close", endAll);
process.on("uncaughtException", (error) => uncaught(error));
process.on("unhandledRejection", (error) => uncaught(error));
startWatchdog();
line.send({ k: "ready" });

function receive(message: ToRunner): void {
  switch (message.k) {
    case "run":
      if (waiting.length === 0) setImmediate(startSome);
      waiting.push(...message.work);
      return;
    case "ack":
      lives.get(message.serial)?.ack();
      return;
    case "stop":
      stop(new Set(message.serials), message.why);
      return;
    case "reply": {
      const answer = pending.get(message.n);
      pending.delete(message.n);
      if (message.error === undefined) answer?.resolve(message.value);
      else answer?.reject(Object.assign(new Error(message.error), { code: "TRIGGER_SERVICE_FAILED" }));
      return;
    }
    case "ping":
      line.send({ k: "pong" });
      return;
    case "close":
      closing = true;
      waiting = [];
      if (lives.size === 0) leave();
      else stop(new Set(lives.keys()), "stopped");
  }
}

function startSome(): void {
  const until = performance.now() + SLICE_MS;
  let started = 0;
  while (started < waiting.length && performance.now() < until) {
    const life = new TriggerLifecycle(waiting[started++] as Assignment, surroundings);
    lives.set(life.who, life);
    life.begin();
  }
  waiting = waiting.slice(started);
  if (waiting.length > 0) setImmediate(startSome);
}

function stop(serials: ReadonlySet<number>, why: TriggerAbortKind): void {
  waiting = waiting.filter(({ serial }) => !serials.has(serial));
  for (const serial of serials) lives.get(serial)?.stop(why);
}

function uncaught(thrown: unknown): void {
  const scope = currentScope();
  if (scope !== null) blame(scope, thrown);
  else {
    const { stack, message } = errorFacts(thrown);
    print(2, `uncaught in a trigger process, outside of any trigger: ${stack ?? message}\n`);
    exit(1);
  }
}

/** Fails a trigger, or all triggers of a bundle whose top level threw. A trigger that has ended meanwhile is unaffected. */
function blame(scope: Scope, thrown: unknown): void {
  if (typeof scope.who === "number") {
    const life = lives.get(scope.who);
    if (life !== undefined) life.fail(thrown);
    else print(2, `uncaught, from a trigger that has ended: ${errorFacts(thrown).stack}\n`);
    return;
  }
  for (const life of lives.values()) if (life.bundlePath === scope.who) life.fail(thrown);
}

function leave(): void {
  line.flush();
  socket.end(() => exit(0));
}

/** The supervisor has gone, or this process leaves: it ends together with every process it started. */
function endAll(): void {
  process.kill(-process.pid, "SIGKILL");
}
