/** What tasks say about themselves, outside of the engine: their notes, and whether the processes that wait at a gate live. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface Note {
  readonly run: string;
  readonly task: string | null;
  /** null: of a callback. */
  readonly attempt: string | null;
  readonly tryNumber: number;
  readonly what: string;
  readonly value: unknown;
  readonly pid: number;
}

export class Witness {
  readonly url: string;
  readonly #server: Server;
  readonly #notes: Note[] = [];
  readonly #open = new Set<string>();
  /** Attempts that wait at the gate of their run. */
  readonly #waiting = new Map<string, { readonly run: string; readonly answer: ServerResponse }>();
  readonly #gone = new Set<string>();

  static async start(host = "127.0.0.1"): Promise<Witness> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, resolve));
    return new Witness(server, `http://${host}:${(server.address() as { port: number }).port}`);
  }

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  notes(run: string, what: string): Note[] {
    return this.#notes.filter((note) => note.run === run && note.what === what);
  }

  /** Waits for the n-th such note. */
  async note(run: string, what: string, nth = 1): Promise<Note> {
    await soon(
      () => this.notes(run, what).length >= nth,
      () => `"${what}" ${nth} times of ${run}`,
    );
    return this.notes(run, what)[nth - 1] as Note;
  }

  /** Waits until an attempt of the run has reached the gate. */
  async waits({ attempt, run }: Note): Promise<void> {
    await soon(
      () => this.#waiting.has(attempt ?? ""),
      () => `an attempt of ${run} at its gate`,
    );
  }

  /** All attempts of the run may go on. */
  open(run: string): void {
    this.#open.add(run);
    for (const [attempt, { answer, run: other }] of this.#waiting) {
      if (other !== run) continue;
      this.#waiting.delete(attempt);
      answer.end();
    }
  }

  /** The process of an attempt that waited at its gate has ended, or its call was aborted. */
  isGone({ attempt }: Note): boolean {
    return this.#gone.has(attempt ?? "");
  }

  async gone(note: Note): Promise<void> {
    await soon(
      () => this.isGone(note),
      () => `the end of the process of attempt ${note.attempt}`,
    );
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    if (request.method === "POST") {
      let text = "";
      for await (const piece of request) text += String(piece);
      this.#notes.push(JSON.parse(text) as Note);
      response.end();
      return;
    }
    const run = decodeURIComponent(url.pathname.split("/")[2] ?? "");
    const attempt = url.searchParams.get("attempt") ?? "";
    if (this.#open.has(run)) {
      response.end();
      return;
    }
    this.#waiting.set(attempt, { run, answer: response });
    response.on("close", () => {
      if (this.#waiting.delete(attempt)) this.#gone.add(attempt);
    });
  }
}

/** A dead worker is noticed when its lease has expired. */
const PATIENCE_MS = 60_000;

/** Polls: the suite knows nothing of the events inside an installation. */
export async function soon(
  holds: () => boolean | Promise<boolean>,
  what: () => string,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) assert.fail(`did not happen within ${withinMs / 1_000} s: ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
