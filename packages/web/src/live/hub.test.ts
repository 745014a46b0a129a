/** The hub against a stream of the test's own: topics, lost messages, reconnections. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type EventStream, LiveHub } from "./hub.ts";
import type { LiveMessage, LiveState, LostMessages } from "./messages.ts";

class Stream implements EventStream {
  readyState = 0;
  readonly topics: readonly string[];
  readonly #listeners = new Map<string, (event: MessageEvent<string>) => void>();

  constructor(topics: readonly string[]) {
    this.topics = topics;
  }

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.#listeners.set(type, listener);
  }

  send(type: string, data?: unknown): void {
    this.#listeners.get(type)?.({ data: data === undefined ? undefined : JSON.stringify(data) } as never);
  }

  open(id: string, topics = this.topics): void {
    this.readyState = 1;
    this.send("open");
    this.send("open", { stream_id: id, topics });
  }

  close(): void {
    this.readyState = 2;
  }
}

class Page {
  readonly messages: (LiveMessage | LostMessages)[] = [];
  readonly states: LiveState[] = [];
  onMessage(message: LiveMessage | LostMessages): void {
    this.messages.push(message);
  }
  onState(state: LiveState): void {
    this.states.push(state);
  }
  lost(): string[] {
    const topics = this.messages.filter((each) => "isLost" in each).map(({ topic }) => topic);
    this.messages.length = 0;
    return topics;
  }
}

let streams: Stream[];
let changes: [string, readonly string[]][];
let knows: boolean;
let hub: LiveHub;

beforeEach(() => {
  vi.useFakeTimers();
  streams = [];
  changes = [];
  knows = true;
  hub = new LiveHub({
    open: (topics) => {
      const stream = new Stream(topics);
      streams.push(stream);
      return stream;
    },
    change: async (id, topics) => {
      changes.push([id, topics]);
      return knows;
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(60);

describe("a stream", () => {
  it("is one for all pages, with the topics of all, and each gets only its own messages", async () => {
    const [home, runs] = [new Page(), new Page()];
    hub.subscribe(home, ["home"]);
    hub.subscribe(runs, ["runs", "home"]);
    await settle();
    expect(streams.map(({ topics }) => topics)).toEqual([["home", "runs"]]);
    streams[0]!.open("a");
    expect([home.lost(), runs.lost()]).toEqual([["home"], ["home", "runs"]]);
    streams[0]!.send("change", { topic: "runs", runs: [] });
    expect([home.messages, runs.messages]).toEqual([[], [{ topic: "runs", runs: [] }]]);
    expect(home.states).toEqual(["connecting", "live"]);
  });

  it("gets new topics without a new connection, and pages read them again", async () => {
    const page = new Page();
    hub.subscribe(page, ["home"]);
    await settle();
    streams[0]!.open("a");
    page.lost();
    hub.subscribe(page, ["run:etl/1", "home"]);
    await settle();
    expect([streams.length, changes]).toEqual([1, [["a", ["run:etl/1", "home"]]]]);
    expect(page.lost()).toEqual(["run:etl/1"]);
  });

  it("is opened again when the server does not know it", async () => {
    const page = new Page();
    hub.subscribe(page, ["home"]);
    await settle();
    streams[0]!.open("a");
    knows = false;
    hub.subscribe(page, ["home", "runs"]);
    await settle();
    expect([streams.length, streams[0]!.readyState, streams[1]!.topics]).toEqual([2, 2, ["home", "runs"]]);
  });

  it("continues after a reconnection of the browser, except for topics that came later", async () => {
    const page = new Page();
    hub.subscribe(page, ["home"]);
    await settle();
    streams[0]!.open("a");
    hub.subscribe(page, ["home", "runs"]);
    await settle();
    page.lost();
    streams[0]!.readyState = 0;
    streams[0]!.send("error");
    expect(page.states.at(-1)).toBe("connecting");
    streams[0]!.open("b", ["home"]);
    await settle();
    expect(changes.at(-1)).toEqual(["b", ["home", "runs"]]);
    expect(page.lost()).toEqual(["runs"]);
  });

  it("is retried after an error that the browser does not retry", async () => {
    const page = new Page();
    hub.subscribe(page, ["home"]);
    await settle();
    streams[0]!.close();
    streams[0]!.send("error");
    expect(page.states.at(-1)).toBe("offline");
    await vi.advanceTimersByTimeAsync(3_100);
    expect(streams.length).toBe(2);
    streams[1]!.open("b");
    expect([page.states.at(-1), page.lost()]).toEqual(["live", ["home"]]);
  });

  it("tells pages which messages were lost", async () => {
    const page = new Page();
    hub.subscribe(page, ["home", "runs"]);
    await settle();
    streams[0]!.open("a");
    page.lost();
    streams[0]!.send("resync", { topics: ["runs", "jobs"] });
    expect(page.lost()).toEqual(["runs"]);
  });

  it("ends when the last page is closed", async () => {
    const page = new Page();
    hub.subscribe(page, ["home"]);
    await settle();
    streams[0]!.open("a");
    hub.unsubscribe(page);
    await settle();
    expect(streams[0]!.readyState).toBe(2);
  });
});
