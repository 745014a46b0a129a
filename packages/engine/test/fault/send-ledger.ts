/** What writers say they have sent, written by themselves outside the system under test: a file for each. */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ALL_WRITERS, type Plan, type PlannedSignal, type Writer } from "./signal-plan.ts";

/** A batch whose sending began, and maybe was answered. */
interface SendLine {
  readonly batch: number;
  /** "ends": there will be no more. */
  readonly did: "begins" | "stored" | "ends";
  /** Milliseconds of the machine's clock. */
  readonly at: number;
  /** Of what was stored: how many signals were there before, because it was not the first time they were sent. */
  readonly again?: number;
}

export interface Sent {
  /** The number of the batch that is next, or has begun and is not known to be stored. */
  readonly next: number;
  /** When that one began; null: it has not. */
  readonly openSince: number | null;
  /** Signals that are stored, and how many of them were found to be so when they were sent again. */
  readonly signals: number;
  readonly again: number;
  readonly isOver: boolean;
}

export class SendLedger {
  readonly #folder: string;
  readonly #plan: Plan;
  /** As far as each file was read. */
  readonly #read = new Map<string, { length: number; sent: Sent }>();

  constructor(folder: string, plan: Plan) {
    this.#folder = folder;
    this.#plan = plan;
    mkdirSync(folder, { recursive: true });
  }

  begins(writer: Writer, batch: number): void {
    this.#write(writer, { batch, did: "begins", at: Date.now() });
  }

  stored(writer: Writer, batch: number, again: number): void {
    this.#write(writer, { batch, did: "stored", at: Date.now(), again });
  }

  ends(writer: Writer): void {
    this.#write(writer, { batch: this.sent(writer).next, did: "ends", at: Date.now() });
  }

  sent(writer: Writer): Sent {
    const known = this.#read.get(writer.id) ?? { length: 0, sent: NOTHING };
    if (!existsSync(this.#file(writer))) return known.sent;
    const text = readFileSync(this.#file(writer), "utf8");
    const length = text.lastIndexOf("\n") + 1;
    let { sent } = known;
    for (const line of text.slice(known.length, length).split("\n").slice(0, -1))
      sent = this.#after(sent, writer, JSON.parse(line) as SendLine);
    this.#read.set(writer.id, { length, sent });
    return sent;
  }

  /** Signals that are stored, of all writers. */
  total(): number {
    return ALL_WRITERS.reduce((sum, writer) => sum + this.sent(writer).signals, 0);
  }

  again(): number {
    return ALL_WRITERS.reduce((sum, writer) => sum + this.sent(writer).again, 0);
  }

  isOver(): boolean {
    return ALL_WRITERS.every((writer) => this.sent(writer).isOver);
  }

  /** What is sent again may be as old as this, and nothing older; now, if nobody is sending. */
  openSince(now: number): number {
    return Math.min(now, ...ALL_WRITERS.map((writer) => this.sent(writer).openSince ?? now));
  }

  /** All that is stored, by what is said of it. */
  *all(): Generator<PlannedSignal & { readonly writer: Writer }> {
    for (const writer of ALL_WRITERS) {
      const { next } = this.sent(writer);
      for (let batch = 0, sent = 0; batch < next; batch++) {
        const signals = this.#plan.batch(writer, batch, sent);
        sent += signals.length;
        for (const signal of signals) yield { ...signal, writer };
      }
    }
  }

  #after(sent: Sent, writer: Writer, { again = 0, at, batch, did }: SendLine): Sent {
    if (did === "begins") return { ...sent, openSince: at };
    if (did === "ends") return { ...sent, isOver: true };
    const { length } = this.#plan.batch(writer, batch, sent.signals);
    return {
      isOver: false,
      next: batch + 1,
      openSince: null,
      signals: sent.signals + length,
      again: sent.again + again,
    };
  }

  #write(writer: Writer, line: SendLine): void {
    appendFileSync(this.#file(writer), `${JSON.stringify(line)}\n`);
  }

  #file(writer: Writer): string {
    return join(this.#folder, `${writer.id}.jsonl`);
  }
}

const NOTHING: Sent = { next: 0, openSince: null, signals: 0, again: 0, isOver: false };
