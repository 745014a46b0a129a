/** Custom triggers that run in this process. */

import type { TriggerOutcome } from "@tradewind/engine/model";
import type { TriggerCall } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerAbortKind, TriggerHost, TriggerProgram } from "@tradewind/sdk/program";
import { failedWith } from "./trigger-script.ts";

/** How long a trigger may take after its event, e.g. to acknowledge it, before it is aborted. */
const FAREWELL_MS = 100;

/** The `abort.reason` of a trigger, with the `kind` that a triggerer sets. */
export function abortReason(kind: TriggerAbortKind, message: string, name = "AbortError"): DOMException {
  return Object.assign(new DOMException(message, name), { kind });
}

export class LiveTriggers {
  readonly #farewells = new Set<Promise<void>>();

  /** Its first outcome; null if it was aborted before. */
  async run(program: TriggerProgram, call: TriggerCall, host: TriggerHost): Promise<TriggerOutcome | null> {
    const over = new AbortController();
    const stop = () => over.abort(host.abort.reason);
    host.abort.addEventListener("abort", stop, { once: true });
    if (host.abort.aborted) stop();
    let running: RunningTrigger | undefined;
    let outcome: TriggerOutcome | null = null;
    try {
      running = await program.start(call.args, { ...host, abort: over.signal });
      outcome = await firstOf(running, over.signal);
    } catch (error) {
      if (!over.signal.aborted) outcome = failedWith(error);
    }
    // The wait ends with the event. The trigger may still acknowledge it, so it is not aborted yet.
    host.abort.removeEventListener("abort", stop);
    if (running !== undefined) this.#dismiss(running, over, outcome);
    return outcome;
  }

  /** Resolves when all triggers have cleaned up. */
  async close(): Promise<void> {
    await Promise.all(this.#farewells);
  }

  #dismiss(running: RunningTrigger, over: AbortController, outcome: TriggerOutcome | null): void {
    const farewell = (async () => {
      if (outcome?.kind === "event") await acknowledge(running);
      over.abort(abortReason("fired", "the trigger has fired"));
      await running.cleanup();
    })();
    this.#farewells.add(farewell);
  }
}

async function firstOf(running: RunningTrigger, abort: AbortSignal): Promise<TriggerOutcome | null> {
  const aborted = new Promise<null>((resolve) => {
    if (abort.aborted) resolve(null);
    abort.addEventListener("abort", () => resolve(null), { once: true });
  });
  const first = await Promise.race([running.next(), aborted]);
  if (first === null) return null;
  if (first.kind === "event") return { kind: "event", payload: first.payload, key: null };
  if (first.kind === "ending") return { kind: "ending", ending: first.ending };
  const message = "The trigger returned without an event: its waiters would wait forever.";
  throw Object.assign(new Error(message), { code: "TRIGGER_ENDED_WITHOUT_EVENT" });
}

/** The call for the next event confirms that the last one is stored. */
async function acknowledge(running: RunningTrigger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FAREWELL_MS);
  });
  await Promise.race([running.next().catch(() => {}), late]);
  clearTimeout(timer);
}
