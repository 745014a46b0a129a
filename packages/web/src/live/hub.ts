/**
 * One connection to the server's stream for any number of pages. Each page names its topics; the stream has those of all of them. A
 * page whose topics are new, or whose messages were lost, reads its data again.
 */
import type { LiveMessage, LiveState, LostMessages } from "./messages.ts";

export interface Subscriber {
  onMessage(message: LiveMessage | LostMessages): void;
  onState(state: LiveState): void;
}

/** The parts of EventSource that are used. */
export interface EventStream {
  readonly readyState: number;
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export interface Connection {
  open(topics: readonly string[]): EventStream;
  /** Returns whether the server knows the stream. */
  change(streamId: string, topics: readonly string[]): Promise<boolean>;
}

const CLOSED = 2;
const RETRY_MS = 3_000;
/** A page that navigates leaves its topics and names the next ones in one go. */
const SETTLE_MS = 50;

export class LiveHub {
  readonly #connection: Connection;
  readonly #topics = new Map<Subscriber, ReadonlySet<string>>();
  #stream: EventStream | null = null;
  #streamId: string | null = null;
  /** Of the open stream, as the server knows them. */
  #sent: ReadonlySet<string> = new Set();
  #state: LiveState = "connecting";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Replaces the topics of a subscriber. */
  subscribe(subscriber: Subscriber, topics: readonly string[]): void {
    const isNew = !this.#topics.has(subscriber);
    this.#topics.set(subscriber, new Set(topics));
    if (isNew) subscriber.onState(this.#state);
    this.#later(SETTLE_MS);
  }

  unsubscribe(subscriber: Subscriber): void {
    this.#topics.delete(subscriber);
    this.#later(SETTLE_MS);
  }

  #later(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#update(), ms);
  }

  #wanted(): Set<string> {
    return new Set([...this.#topics.values()].flatMap((topics) => [...topics]));
  }

  async #update(): Promise<void> {
    const wanted = this.#wanted();
    if (wanted.size === 0) {
      // Without a reader, a stream would only cost the server.
      if (this.#topics.size === 0) this.#close();
      return;
    }
    if (this.#stream === null || this.#stream.readyState === CLOSED) {
      this.#open([...wanted]);
      return;
    }
    if (this.#streamId === null || [...wanted].every((topic) => this.#sent.has(topic))) return;
    const added = [...wanted].filter((topic) => !this.#sent.has(topic));
    const streamId = this.#streamId;
    const isKnown = await this.#connection.change(streamId, [...wanted]).catch(() => false);
    if (streamId !== this.#streamId) return;
    if (!isKnown) {
      this.#open([...this.#wanted()]);
      return;
    }
    this.#sent = wanted;
    // What changed between the reading of the page and this moment has no message.
    this.#lost(added);
  }

  #open(topics: readonly string[]): void {
    this.#close();
    this.#setState("connecting");
    const stream = this.#connection.open(topics);
    this.#stream = stream;
    const isCurrent = () => this.#stream === stream;
    stream.addEventListener("open", (event) => {
      // The browser's own event of this name has no data.
      if (!isCurrent() || typeof event.data !== "string") return;
      const opened = JSON.parse(event.data) as { stream_id: string; topics: string[] };
      // The browser connected again by itself: the server continues after the last message, or says what is lost.
      const before = this.#sent;
      this.#streamId = opened.stream_id;
      this.#sent = new Set(opened.topics);
      this.#setState("live");
      this.#lost(opened.topics.filter((topic) => !before.has(topic)));
      this.#later(0);
    });
    stream.addEventListener("change", (event) => {
      if (isCurrent()) this.#publish(JSON.parse(event.data) as LiveMessage);
    });
    stream.addEventListener("resync", (event) => {
      if (isCurrent()) this.#lost((JSON.parse(event.data) as { topics: string[] }).topics);
    });
    stream.addEventListener("error", () => {
      if (!isCurrent()) return;
      this.#streamId = null;
      this.#setState(stream.readyState === CLOSED ? "offline" : "connecting");
      if (stream.readyState === CLOSED) this.#later(RETRY_MS);
    });
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = null;
    this.#streamId = null;
    this.#sent = new Set();
  }

  #lost(topics: readonly string[]): void {
    for (const topic of topics) this.#publish({ topic, isLost: true });
  }

  #publish(message: LiveMessage | LostMessages): void {
    for (const [subscriber, topics] of this.#topics)
      if (topics.has(message.topic)) subscriber.onMessage(message);
  }

  #setState(state: LiveState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const subscriber of this.#topics.keys()) subscriber.onState(state);
  }
}
