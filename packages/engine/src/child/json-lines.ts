/**
 * Messages over a stream socket, one JSON text per line. Used instead of Node's own IPC channel because that one throws
 * in the receiver's event loop if the sender writes anything else to the descriptor, and accepts messages of any size:
 * user code in a child could end the engine, by mistake or on purpose. Here both end only the channel.
 */
import type { Socket } from "node:net";

export interface JsonLinesListener {
  message(raw: unknown): void;
  /** The other side sent an invalid message. Called once; nothing is read after it. */
  broken(reason: string): void;
  /** Maximum length of a line. Default: the longest valid message of a task. */
  readonly maxLength?: number;
}

/** Longer than the longest valid message: an inline output of maximum size, with every character escaped. */
const MAX_LINE_LENGTH = 128 * 1024 * 1024;

/** Deeper than the SDK allows. JSON.parse accepts any depth, but JSON.stringify does not. */
const MAX_DEPTH = 1_000;

export function isTooDeep(text: string): boolean {
  if (text.length < 2 * MAX_DEPTH) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === "[" || char === "{") depth++;
    else if (char === "]" || char === "}") depth--;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/** Searches for the next quote: most of a large message is text. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length : at;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}

export class JsonLines<Sent> {
  readonly #socket: Socket;
  readonly #listener: JsonLinesListener;
  #parts: string[] = [];
  #length = 0;
  #over = false;

  constructor(socket: Socket, listener: JsonLinesListener) {
    this.#socket = socket;
    this.#listener = listener;
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => this.#read(chunk));
    socket.on("error", () => {});
  }

  /** @throws TypeError if the message is not JSON. A message after the close is dropped. */
  send(message: Sent, done?: () => void): void {
    const line = `${JSON.stringify(message)}\n`;
    if (this.#socket.writable) this.#socket.write(line, done);
    else done?.();
  }

  #read(chunk: string): void {
    let from = 0;
    for (let at = chunk.indexOf("\n"); at >= 0 && !this.#over; at = chunk.indexOf("\n", from)) {
      const line = chunk.slice(from, at);
      from = at + 1;
      if (this.#parts.length === 0) this.#line(line);
      else {
        const whole = this.#parts.join("") + line;
        this.#parts = [];
        this.#length = 0;
        this.#line(whole);
      }
    }
    if (this.#over || from === chunk.length) return;
    this.#parts.push(chunk.slice(from));
    this.#length += chunk.length - from;
    if (this.#length > (this.#listener.maxLength ?? MAX_LINE_LENGTH)) this.#break("a message without end");
  }

  #line(line: string): void {
    if (isTooDeep(line)) {
      this.#break("something that is nested too deeply");
      return;
    }
    let raw: unknown;
    try {
      raw = JSON.parse(line);
    } catch {
      this.#break("something that is not JSON");
      return;
    }
    this.#listener.message(raw);
  }

  #break(reason: string): void {
    this.#over = true;
    this.#parts = [];
    this.#listener.broken(reason);
  }
}
