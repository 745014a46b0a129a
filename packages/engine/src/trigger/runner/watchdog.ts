/**
 * The thread that detects a blocked event loop and determines whose code blocks it. It reads the heartbeat of the main
 * thread; when beats are missing it samples the main thread repeatedly until the stall ends. Samples are sent at once,
 * over a separate descriptor, so the supervisor receives them while the loop is still blocked. One sample shows which
 * code runs; two equal samples show that it has been running, so the second follows soon after the first.
 */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { STALL_FD, type StallReport } from "../process/runner-protocol.ts";
import { BEAT_MS, type Pulse } from "./pulse.ts";
import { type Sight, StallProbe } from "./stall-probe.ts";

const STALL_MS = 200;
const SECOND_LOOK_MS = 50;
const LOOK_AGAIN_MS = 250;
/** Limit of the engine's own module loads: shorter than the silence after which the supervisor ends the process. */
const LOAD_MS = 4_000;
/** Enough samples to see that it is always the same code, few enough not to slow it down. */
const MAX_LOOKS = 12;

const pulse = workerData as Pulse;
const probe = new StallProbe(lastBeat, seen);
let beat = lastBeat();
let checkedAt = process.hrtime.bigint();
/** How long this thread itself was paused since that beat: then the machine was paused or overloaded. */
let lateMs = 0;
/** Null while the loop turns. */
let stall: { looks: number; sights: number; nextAt: number } | null = null;

setInterval(check, BEAT_MS);
check();

function check(): void {
  const now = process.hrtime.bigint();
  lateMs += Math.max(0, millis(now - checkedAt) - 2 * BEAT_MS);
  checkedAt = now;
  const current = lastBeat();
  if (current !== beat) {
    if (stall !== null) report({ k: "over", ms: Math.round(millis(current - beat)) });
    stall = null;
    beat = current;
    lateMs = 0;
  } else if (stillMs() >= (stall?.nextAt ?? STALL_MS) + loadMs()) {
    stall ??= { looks: 0, sights: 0, nextAt: 0 };
    stall.nextAt = stillMs() + LOOK_AGAIN_MS;
    if (++stall.looks <= MAX_LOOKS && !probe.begin(current)) reportOutside();
  }
}

function lastBeat(): bigint {
  return Atomics.load(pulse.beatAt, 0);
}

/** Time without a beat, minus the time that the main thread is not responsible for. */
function stillMs(): number {
  return millis(process.hrtime.bigint() - beat) - lateMs;
}

function loadMs(): number {
  return Atomics.load(pulse.loads, 0) > 0 ? LOAD_MS : 0;
}

function millis(nanos: bigint): number {
  return Number(nanos) / 1e6;
}

/** The last sample is pending: the main thread is not in JavaScript. */
function reportOutside(): void {
  const who = Atomics.load(pulse.waiter, 0);
  if (who !== 0) seen({ who, stack: "    at a synchronous call of node:child_process" });
}

function seen({ who, stack }: Sight): void {
  if (stall === null) return;
  if (++stall.sights === 1) stall.nextAt = Math.min(stall.nextAt, stillMs() + SECOND_LOOK_MS);
  report({ k: "seen", who, ms: Math.round(stillMs()), stack });
}

function report(stallReport: StallReport): void {
  try {
    writeSync(STALL_FD, `${JSON.stringify(stallReport)}\n`);
  } catch {
    // The supervisor is gone, or does not read: there is no other receiver.
  }
}
