/** A browser with one live stream of the web UI, over HTTP. */
import assert from "node:assert";
import type { z } from "zod";
import { type LiveMessage, liveMessage, type openEvent } from "../../src/api/live/live-messages.ts";
import { afterFile } from "../support/after-file.ts";

export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: the data of any event
  readonly data: any;
  /** When it arrived, as of `performance.now()`. */
  readonly at: number;
}

interface Connection {
  readonly url: string;
  readonly headers: Record<string, string>;
}

type MessageOf<T, M = LiveMessage> = M extends { topic: infer Topic } ? (T extends Topic ? M : never) : never;

export class LiveBrowser {
  readonly events: StreamEvent[] = [];
  readonly response: Response;
  readonly #connection: Connection;
  readonly #stop = new AbortController();
  readonly #arrived = new Set<() => void>();
  /** Ids of heartbeats. */
  readonly beats: string[] = [];
  #failure: unknown = null;
  isEnded = false;

  private constructor(connection: Connection, response: Response, stop: AbortController) {
    this.#connection = connection;
    this.response = response;
    this.#stop = stop;
    opened.add(this);
  }

  /** Returns after the first event. `last`: the id of the last event that it has received. */
  static async open(
    connection: Connection,
    topics: readonly string[],
    { last }: { readonly last?: string } = {},
  ): Promise<LiveBrowser> {
    const stop = new AbortController();
    const response = await fetch(
      `${connection.url}/ui/stream?topics=${encodeURIComponent(topics.join(","))}`,
      {
        headers: { ...connection.headers, ...(last === undefined ? {} : { "last-event-id": last }) },
        signal: stop.signal,
      },
    );
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    const browser = new LiveBrowser(connection, response, stop);
    void browser.#read();
    await browser.reach(() => browser.events.some(({ event }) => event === "open"));
    return browser;
  }

  get id(): string {
    return (this.events.find(({ event }) => event === "open")!.data as z.output<typeof openEvent>).stream_id;
  }

  /** The id of the last event. */
  get last(): string {
    return this.events.at(-1)!.id;
  }

  get messages(): LiveMessage[] {
    return this.events.filter(({ event }) => event === "change").map(({ data }) => data);
  }

  of<T extends LiveMessage["topic"]>(topic: T): MessageOf<T>[] {
    return this.messages.filter((message) => message.topic === topic) as MessageOf<T>[];
  }

  /** Topics of each resync. */
  get resyncs(): string[][] {
    return this.events.filter(({ event }) => event === "resync").map(({ data }) => data.topics);
  }

  change(topics: readonly string[]): Promise<Response> {
    return fetch(`${this.#connection.url}/ui/stream/${this.id}/topics`, {
      method: "PUT",
      headers: { ...this.#connection.headers, "content-type": "application/json" },
      body: JSON.stringify({ topics }),
    });
  }

  /** Waits until it holds, which is checked with every arrival. */
  async reach(holds: () => boolean, withinMs = 20_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!holds()) {
      if (this.#failure !== null) throw this.#failure;
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`the stream has only: ${JSON.stringify(this.events).slice(-2_000)}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, left);
      this.#arrived.add(resolve);
      await promise;
      this.#arrived.delete(resolve);
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#stop.abort();
    opened.delete(this);
  }

  async #read(): Promise<void> {
    let pending = "";
    try {
      for await (const text of this.response.body!.pipeThrough(new TextDecoderStream())) {
        const blocks = (pending + text).split("\n\n");
        pending = blocks.pop()!;
        for (const block of blocks) this.#add(block);
        this.#wake();
      }
    } catch (error) {
      if (!this.#stop.signal.aborted && !isCut(error)) this.#failure = error;
    } finally {
      this.isEnded = true;
      this.#wake();
    }
  }

  #add(block: string): void {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
    const [event, data, id = ""] = [field("event"), field("data"), field("id")];
    if (block.startsWith(":")) this.beats.push(id);
    if (event === undefined || data === undefined) return;
    const parsed = JSON.parse(data);
    // Every message that a test receives is as the schema says, without other fields.
    if (event === "change") assert.deepStrictEqual(liveMessage.parse(parsed), parsed);
    this.events.push({ id, event, data: parsed, at: performance.now() });
  }

  #wake(): void {
    for (const wake of this.#arrived) wake();
  }
}

/** The server closed the connection. */
function isCut(error: unknown): boolean {
  return error instanceof TypeError && error.message === "terminated";
}

const opened = new Set<LiveBrowser>();

afterFile(async () => {
  for (const browser of opened) browser.close();
});
