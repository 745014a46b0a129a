/**
 * Transfers large values between a supervisor and its child in pieces: outputs to a draft on disk, inputs from verified
 * objects. The supervisor never holds a whole value in memory.
 */
import type { Socket } from "node:net";
import { apart, type Known, type LargePlace, type LargeValue } from "../../model/index.ts";
import type { OpenText } from "../../output/large-outputs.ts";
import type { OutputDraft } from "../../output/output-draft.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import { errorFacts } from "./end-errors.ts";
import type { Job } from "./job.ts";
import type { EndedMessage, PieceTarget, ToChild } from "./protocol.ts";

/** Objects that are verified while another one is sent. */
const AHEAD = 8;

/** The connection to the child. */
export interface TransferWay {
  readonly socket: Socket;
  send(message: ToChild, done?: () => void): void;
  /** Whether the child still has this job. */
  isWanted(job: Job): boolean;
}

export class LargeTransfer {
  readonly #way: TransferWay;
  #slots = 0;
  /** Pieces that are being written to disk. */
  #pending = 0;

  constructor(way: TransferWay) {
    this.#way = way;
  }

  /** Receives a piece of an output. The child is paused until it is written. */
  receive(job: Job, text: string): void {
    const { socket } = this.#way;
    this.#pending++;
    socket.pause();
    void job.piece(text).finally(() => {
      if (--this.#pending === 0) socket.resume();
    });
  }

  /** Sends large values, each verified before its first piece is sent. Resolves with their places in the message. */
  async send(job: Job, places: readonly LargePlace[]): Promise<PieceTarget[]> {
    const values = [...new Map(places.map(({ value }) => [value.name, value])).values()];
    const slots = new Map(values.map(({ name }) => [name, ++this.#slots]));
    const opening: Promise<OpenText>[] = [];
    try {
      for (const [nth, { name }] of values.entries()) {
        while (opening.length < Math.min(nth + AHEAD, values.length))
          opening.push(opened(job, values[opening.length]!));
        const text = await opening[nth]!;
        await this.#send(job, slots.get(name)!, text);
        text.close();
      }
    } finally {
      for (const text of await Promise.allSettled(opening)) if ("value" in text) text.value.close();
    }
    return places.map(({ at, value }) => ({ at, slot: slots.get(value.name)! }));
  }

  async #send(job: Job, slot: number, text: OpenText): Promise<void> {
    for await (const piece of text.pieces()) {
      if (!this.#way.isWanted(job)) return;
      await new Promise<void>((resolve) =>
        this.#way.send({ k: "piece", slot, text: piece }, () => resolve()),
      );
    }
  }

  async reply(job: Job, n: number, value: Known | undefined): Promise<void> {
    const places: LargePlace[] = [];
    const small = value === undefined ? undefined : apart(value, ["value"], places);
    const large = places.length > 0 ? { large: await this.send(job, places) } : {};
    if (this.#way.isWanted(job)) this.#way.send({ k: "reply", n, value: small, ...large });
  }
}

/** Awaited later: until then a failure must not be an unhandled rejection. */
function opened(job: Job, value: LargeValue): Promise<OpenText> {
  const opening = job.openLarge(value);
  opening.catch(() => {});
  return opening;
}

/** The end of an attempt that never started, because an input could not be read. */
export function withoutInputs({ id }: Job, error: unknown): EndedMessage {
  const code = error instanceof EngineError ? error.code : "OUTPUT_UNREADABLE";
  const outcome = { kind: "failed", error: errorFacts(code, messageOf(error)), retry: true } as const;
  return { k: "ended", id, outcome, logged: 0, dropped: 0, aborted: false, unclean: null };
}

/** The large output of one attempt, which the child sends before it reports the end. */
export class IncomingOutput {
  readonly #draft: OutputDraft;
  /** Resolves when all pieces so far are written, in the order of their arrival. */
  #written: Promise<void>;

  constructor(draft: OutputDraft) {
    this.#draft = draft;
    this.#written = draft.open();
    this.#written.catch(() => {});
  }

  write(text: string): Promise<void> {
    this.#written = this.#written.then(() => this.#draft.write(text));
    this.#written.catch(() => {});
    return this.#written.catch(() => {});
  }

  /** @throws if the draft could not be opened. */
  async whole(): Promise<OutputDraft> {
    await this.#written;
    return this.#draft;
  }

  async discard(): Promise<void> {
    await this.#written.catch(() => {});
    await this.#draft.discard();
  }
}
