/** A subscription over a stream: opened at the first read, reopened at its position when it breaks. */
import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import type { EngineError } from "../../service/errors.ts";
import { WakeableSleep } from "../../service/wakeable-sleep.ts";
import { isAway } from "../remote-signals.ts";
import type { Signal, SignalFilter } from "../signal.ts";
import type { NextOptions, SignalBatch, SignalPlace, Subscription } from "../signal-service.ts";
import { fromSignalMessage, type SignalMessage, toFilter, toPlace } from "./messages.ts";

interface StreamParts {
  readonly open: (request: object) => ClientReadableStream<unknown>;
  readonly explain: (error: ServiceError) => EngineError;
  readonly filter: SignalFilter;
  readonly place: SignalPlace;
}

/** With this many buffered signals the stream is paused: the server then sends no more. */
const MAX_BUFFERED = 2_000;
const RETRY_MAX_MS = 2_000;

export class GrpcSubscription implements Subscription {
  readonly #parts: StreamParts;
  readonly #buffer: Signal[] = [];
  readonly #sleep = new WakeableSleep();
  #stream: ClientReadableStream<unknown> | null = null;
  /** Everything up to here was received. */
  #received: string;
  /** Everything up to here was returned by `next`. */
  #position: string;
  #failure: EngineError | null = null;
  #openAt = 0;
  #retryMs = 50;
  #isClosed = false;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#received = parts.place.position;
    this.#position = parts.place.position;
  }

  async next(options: NextOptions): Promise<SignalBatch> {
    const deadline = performance.now() + options.waitMs;
    while (!this.#isClosed && options.abort?.aborted !== true) {
      if (this.#buffer.length > 0) return this.#drain(options.limit);
      this.#position = this.#received;
      if (this.#failure !== null) throw this.#failure;
      const now = performance.now();
      if (this.#stream === null && now >= this.#openAt) this.#open();
      const left = deadline - now;
      if (left <= 0) break;
      await this.#sleep.sleep(
        this.#stream === null ? Math.min(left, this.#openAt - now) : left,
        options.abort,
      );
    }
    return { signals: [], position: this.#position };
  }

  close(): void {
    this.#isClosed = true;
    this.#stream?.cancel();
    this.#stream = null;
    this.#sleep.wake();
  }

  #drain(limit: number): SignalBatch {
    const signals = this.#buffer.splice(0, limit);
    this.#position = this.#buffer.length === 0 ? this.#received : signals.at(-1)!.position;
    if (this.#buffer.length < MAX_BUFFERED) this.#stream?.resume();
    return { signals, position: this.#position };
  }

  #open(): void {
    const place = toPlace({ ...this.#parts.place, position: this.#received });
    const stream = this.#parts.open({ filter: toFilter(this.#parts.filter), start: { place } });
    this.#stream = stream;
    stream.on("data", (message: { signals: SignalMessage[]; position: string }) => {
      if (this.#stream !== stream) return;
      this.#retryMs = 50;
      this.#received = message.position;
      if (message.signals.length === 0) return;
      this.#buffer.push(...message.signals.map(fromSignalMessage));
      if (this.#buffer.length >= MAX_BUFFERED) stream.pause();
      this.#sleep.wake();
    });
    const ended = (error: EngineError | null) => {
      if (this.#stream !== stream) return;
      this.#stream = null;
      if (error !== null && !isAway(error)) this.#failure = error;
      this.#openAt = performance.now() + this.#retryMs * (0.5 + Math.random() / 2);
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
      this.#sleep.wake();
    };
    stream.on("error", (error: ServiceError) => ended(this.#parts.explain(error)));
    stream.on("end", () => ended(null));
  }
}
