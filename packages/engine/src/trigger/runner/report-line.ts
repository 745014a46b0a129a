/**
 * What this process says to its supervisor. Outcomes go out at once; log records are gathered for one turn of the event
 * loop, and signs of life for a second: ten thousand triggers that poll every second are one message, not ten thousand.
 */
import type { Socket } from "node:net";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import type { JsonLines } from "../../execute/json-lines.ts";
import type { FromRunner, LogRecord } from "../runner-protocol.ts";

const SIGNS_MS = 1_000;
const MAX_MESSAGE_LENGTH = 16 * 1024;
const MAX_FIELDS_LENGTH = 16 * 1024;
/** While the supervisor is this far behind, log records are dropped: they must not fill the memory of all. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

export class ReportLine {
  readonly #socket: Socket;
  readonly #lines: JsonLines<FromRunner>;
  #records: LogRecord[] = [];
  #dropped = new Map<number, number>();
  #polled = new Set<number>();
  #started = new Set<number>();
  #steady = new Set<number>();

  constructor(socket: Socket, lines: JsonLines<FromRunner>) {
    this.#socket = socket;
    this.#lines = lines;
    setInterval(() => this.#signs(), SIGNS_MS);
  }

  send(message: FromRunner): void {
    this.flush();
    this.#lines.send(message);
  }

  log(serial: number, level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void {
    if (this.#socket.writableLength > MAX_BACKLOG_BYTES) {
      this.#dropped.set(serial, (this.#dropped.get(serial) ?? 0) + 1);
      return;
    }
    const record: LogRecord = { serial, level, message: message.slice(0, MAX_MESSAGE_LENGTH) };
    if (this.#records.length === 0) setImmediate(() => this.flush());
    this.#records.push(fields === undefined ? record : { ...record, fields: readable(fields) });
  }

  polled(serial: number): void {
    this.#polled.add(serial);
  }

  started(serial: number): void {
    this.#started.add(serial);
  }

  over(serial: number): void {
    for (const signs of [this.#polled, this.#started, this.#steady, this.#dropped]) signs.delete(serial);
  }

  flush(): void {
    if (this.#records.length === 0) return;
    const records = this.#records;
    this.#records = [];
    this.#lines.send({ k: "logs", records });
  }

  #signs(): void {
    for (const [serial, count] of this.#dropped) {
      this.log(serial, "warn", `${count} log records were dropped: there were more than could be sent.`);
      this.#dropped.delete(serial);
    }
    if (this.#polled.size > 0 || this.#steady.size > 0) {
      this.send({ k: "signs", polled: [...this.#polled], steady: [...this.#steady] });
      this.#polled.clear();
    }
    // What started during this second will have lasted for at least one when the next is over.
    this.#steady = this.#started;
    this.#started = new Set();
  }
}

/** Fields are JSON by their type only: a log call must not be what fails a trigger. */
function readable(fields: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  try {
    const text = JSON.stringify(fields);
    return text.length <= MAX_FIELDS_LENGTH ? fields : { note: "these fields were too large" };
  } catch (error) {
    return { note: `these fields are not JSON: ${String(error)}` };
  }
}
