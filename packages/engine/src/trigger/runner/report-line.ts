/**
 * The messages of this process to its supervisor. Outcomes are sent at once; log records are batched for one turn of the
 * event loop, and signs of life for a second: ten thousand triggers that poll every second cause one message.
 */
import type { Socket } from "node:net";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import type { JsonLines } from "../../child/json-lines.ts";
import type { FromRunner, LogRecord } from "../process/runner-protocol.ts";

const SIGNS_MS = 1_000;
/** Log records of one trigger per second; the rest is dropped. Reading them all would delay the supervisor. */
const RECORDS_PER_SECOND = 1_000;
/** Characters of log in one line; each may become six characters of JSON. */
const LINE_LENGTH = 128 * 1024;
/** Serials in one line. */
const SIGNS_AT_ONCE = 10_000;
const MAX_MESSAGE_LENGTH = 16 * 1024;
const MAX_FIELDS_LENGTH = 16 * 1024;
/** While the supervisor is this far behind, log records are dropped: they must not fill the memory of the process. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

export class ReportLine {
  readonly #socket: Socket;
  readonly #lines: JsonLines<FromRunner>;
  #records: LogRecord[] = [];
  /** Total length of the batched records. */
  #length = 0;
  /** Records of each trigger in this second. */
  #recordCounts = new Map<number, number>();
  #dropped = new Map<number, number>();
  #polled = new Set<number>();

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
    const said = (this.#recordCounts.get(serial) ?? 0) + 1;
    if (said > RECORDS_PER_SECOND || this.#socket.writableLength > MAX_BACKLOG_BYTES) {
      this.#dropped.set(serial, (this.#dropped.get(serial) ?? 0) + 1);
      return;
    }
    this.#recordCounts.set(serial, said);
    const record: LogRecord = { serial, level, message: message.slice(0, MAX_MESSAGE_LENGTH) };
    const read = fields === undefined ? null : readable(fields);
    if (this.#records.length === 0) setImmediate(() => this.flush());
    this.#records.push(read === null ? record : { ...record, fields: read.fields });
    this.#length += record.message.length + (read?.length ?? 0);
    if (this.#length > LINE_LENGTH) this.flush();
  }

  polled(serial: number): void {
    this.#polled.add(serial);
  }

  over(serial: number): void {
    const all = [this.#polled, this.#dropped, this.#recordCounts];
    for (const signs of all) signs.delete(serial);
  }

  flush(): void {
    if (this.#records.length === 0) return;
    const records = this.#records;
    this.#records = [];
    this.#length = 0;
    this.#lines.send({ k: "logs", records });
  }

  #signs(): void {
    this.#recordCounts.clear();
    for (const [serial, count] of this.#dropped) {
      this.log(serial, "warn", `${count} log records were dropped: there were more than could be sent.`);
      this.#dropped.delete(serial);
    }
    const polled = [...this.#polled];
    for (let at = 0; at < polled.length; at += SIGNS_AT_ONCE)
      this.send({ k: "signs", polled: polled.slice(at, at + SIGNS_AT_ONCE) });
    this.#polled.clear();
  }
}

/** Fields are JSON by their type only: a log call must not fail a trigger. */
function readable(fields: Readonly<Record<string, Json>>): {
  readonly fields: Readonly<Record<string, Json>>;
  readonly length: number;
} {
  try {
    const { length } = JSON.stringify(fields);
    if (length <= MAX_FIELDS_LENGTH) return { fields, length };
    return { fields: { note: "these fields were too large" }, length: 0 };
  } catch (error) {
    const note = `these fields are not JSON: ${String(error).slice(0, 1_000)}`;
    return { fields: { note }, length: note.length };
  }
}
