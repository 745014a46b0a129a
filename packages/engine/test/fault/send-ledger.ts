/** The reports of writers about their signals, written outside of the system under test: one file per writer. */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ALL_WRITERS, type Plan, type PlannedSignal, type Writer } from "./signal-plan.ts";

/** A batch whose sending has begun, and possibly was confirmed. */
interface SendLine {
  readonly batch: number;
  /** "ends": no more batches follow. */
  readonly did: "begins" | "stored" | "ends";
  /** Milliseconds of the machine's clock. */
  readonly at: number;
  /** For a stored batch: how many of its signals were stored by an earlier send. */
  readonly again?: number;
}

export interface Sent {
  /** The number of the next batch, or of the batch that has begun and is not confirmed. */
  readonly next: number;
  /** When that batch began; null: it has not. */
  readonly openSince: number | null;
  /** Stored signals, and how many of them a repeated send found already stored. */
  readonly signals: number;
  readonly again: number;
  readonly isOver: boolean;
}

export class SendLedger {
  readonly #folder: string;
  readonly #plan: Plan;
  /** How far each file was read. */
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

  /** Stored signals of all writers. */
  total(): number {
    return ALL_WRITERS.reduce((sum, writer) => sum + this.sent(writer).signals, 0);
  }

  again(): number {
    return ALL_WRITERS.reduce((sum, writer) => sum + this.sent(writer).again, 0);
  }

  isOver(): boolean {
    return ALL_WRITERS.every((writer) => this.sent(writer).isOver);
  }

  /** The age limit of signals that may be sent again; `now` if no writer is sending. */
  openSince(now: number): number {
    return Math.min(now, ...ALL_WRITERS.map((writer) => this.sent(writer).openSince ?? now));
  }

  /** All stored signals, by their plan. */
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
