/**
 * The triggers of the fault tests, which run in trigger runners. They wait for files that the test creates: a gate is open
 * forever once its file exists; a letter is a file in a mailbox.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { endWith, PollTrigger, Trigger, type TriggerContext } from "tradewind";
import { recordTrigger } from "./wait-ledger.ts";

export interface GateArgs {
  readonly folder: string;
  readonly gate: string;
}

export interface GateEvent {
  readonly gate: string;
  /** The triggerer's process: only reports of the trigger's owner may count. */
  readonly by: number;
}

export class Gate extends PollTrigger<GateArgs, GateEvent> {
  static id = "fault.gate";
  static interval = 25;

  override poll() {
    return opened(Gate.id, this.args);
  }
}

/** Runs in two triggerers at once. */
export class TwinGate extends PollTrigger<GateArgs, GateEvent> {
  static id = "fault.twin_gate";
  static interval = 25;
  static replicas = 2;

  override poll() {
    return opened(TwinGate.id, this.args);
  }

  override key({ gate }: GateEvent) {
    return gate;
  }
}

/** Cannot open before its moment, and is only a row until then. */
export class ColdGate extends PollTrigger<GateArgs & { readonly moment: string }, GateEvent> {
  static id = "fault.cold_gate";
  static interval = 25;

  override wakeAt() {
    return new Date(this.args.moment);
  }

  override poll() {
    return Date.now() < Date.parse(this.args.moment) ? undefined : opened(ColdGate.id, this.args);
  }
}

/** Ends the task that waits for it. */
export class LastGate extends PollTrigger<GateArgs & { readonly how: EndingName }, GateEvent> {
  static id = "fault.last_gate";
  static interval = 25;

  override poll() {
    const event = opened(LastGate.id, this.args);
    return event && ENDINGS[this.args.how](event);
  }
}

export type EndingName = "success" | "skip" | "fail" | "fatal";

const ENDINGS = {
  success: (event: GateEvent) => endWith.success({ ...event }),
  skip: () => endWith.skip("scripted"),
  fail: () => endWith.fail("scripted"),
  fatal: () => endWith.fail("scripted", { retry: false }),
} as const;

function opened(kind: string, { folder, gate }: GateArgs): GateEvent | undefined {
  if (!existsSync(join(folder, gate))) return undefined;
  recordTrigger({ kind, name: gate, did: "yielded" });
  return { gate, by: process.ppid };
}

/** Blocks all triggers of its process. */
export class Busy extends Trigger<{ readonly name: string }, GateEvent> {
  static id = "fault.busy";

  override async *run() {
    recordTrigger({ kind: Busy.id, name: this.args.name, did: "yielded" });
    for (const end = performance.now() + 120_000; performance.now() < end; );
    yield { gate: "", by: 0 };
  }
}

export interface LetterEvent {
  readonly letter: string;
  readonly by: number;
}

/** Reports every letter until it is acknowledged, then deletes it. */
export class Letters extends Trigger<{ readonly folder: string }, LetterEvent> {
  static id = "fault.letters";

  override async *run({ abort }: TriggerContext) {
    while (!abort.aborted) {
      for (const letter of readdirSync(this.args.folder)) {
        yield { letter, by: process.ppid };
        recordTrigger({ kind: Letters.id, name: letter, did: "acknowledged" });
        rmSync(join(this.args.folder, letter), { force: true });
      }
      await pause(abort);
    }
  }

  override key({ letter }: LetterEvent) {
    return letter;
  }
}

/** Like `Letters`, but read by two triggerers, and nothing is deleted: a new runner reads everything again. */
export class Notices extends Trigger<{ readonly folder: string }, LetterEvent> {
  static id = "fault.notices";
  static replicas = 2;

  override async *run({ abort }: TriggerContext) {
    for (const read = new Set<string>(); !abort.aborted; await pause(abort)) {
      for (const letter of readdirSync(this.args.folder)) {
        if (read.has(letter)) continue;
        yield { letter, by: process.ppid };
        read.add(letter);
      }
    }
  }

  override key({ letter }: LetterEvent) {
    return letter;
  }
}

function pause(abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 25);
    abort.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
