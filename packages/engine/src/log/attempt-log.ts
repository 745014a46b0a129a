/**
 * The output of one attempt on its way to its log file: bytes are decoded, secrets masked, lines truncated, the total
 * capped. In this order, so that a truncated line cannot reveal half a secret. Silent attempts cost nothing: no file is
 * opened before the first line, and the line that announces the try waits for it.
 */
import { StringDecoder } from "node:string_decoder";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import { MaskStream, type SecretMask } from "../secret/mask.ts";
import type { LogFrame } from "./log-frame.ts";
import type { LogListener, LogSink, LogWriter } from "./log-writer.ts";
import type { LogLine } from "./task-log.ts";

export interface AttemptLogOptions extends LogListener {
  readonly logs: LogWriter;
  readonly key: string;
  readonly maxBytes: number;
  readonly mask: SecretMask;
  /** Written by the engine before the first line; null: already written. */
  readonly opening: () => string | null;
  /** When it began, in ms: a task may be silent for hours before its first line. Null: it has not. */
  readonly begunAt?: () => number | null;
}

/** Characters of one line; the rest of a longer one is dropped. */
export const MAX_LINE_LENGTH = 32 * 1024;
const TAIL_LINES = 20;

export class AttemptLog {
  readonly #options: AttemptLogOptions;
  readonly #streams = new Map<string, LineStream>();
  /** The last lines of stderr: the best evidence when the process dies. */
  readonly #errorTail: string[] = [];
  #file: LogSink | null = null;
  #bytes = 0;
  #truncated = false;
  #droppedLines = 0;

  constructor(options: AttemptLogOptions) {
    this.#options = options;
  }

  get silent(): boolean {
    return this.#file === null;
  }

  /** A frame of the log pipe. */
  frame(frame: LogFrame): void {
    if (frame.source === "task") this.#record(frame);
    else this.#stream(frame.source, frame.source).push(frame.payload, frame.level, frame.time);
  }

  /** Bytes from the process's own descriptor 1 or 2: native code, subprocesses, crash reports. */
  raw(source: "stdout" | "stderr", bytes: Buffer): void {
    this.#stream(`raw ${source}`, source).push(bytes, source === "stdout" ? "info" : "warn", Date.now());
  }

  /** A line of the engine; not subject to the cap. */
  engine(level: LogLevel, message: string, time = Date.now()): void {
    for (const line of this.#options.mask.whole(message).split("\n")) {
      this.#write({ t: new Date(time).toISOString(), level, source: "engine", message: tidy(line) });
    }
  }

  errorTail(): readonly string[] {
    return this.#errorTail;
  }

  /** The process has ended: writes unfinished lines. */
  flush(): void {
    for (const stream of this.#streams.values()) stream.end();
  }

  /** Resolves when the file is complete. */
  async close(droppedBytes: number): Promise<void> {
    if (droppedBytes > 0) this.#truncate();
    if (this.#droppedLines > 0 || droppedBytes > 0) {
      const bytes = droppedBytes > 0 ? ` and ${droppedBytes} bytes` : "";
      this.engine("warn", `${this.#droppedLines} lines${bytes} of output were dropped.`);
    }
    await this.#file?.close();
  }

  #stream(key: string, source: "stdout" | "stderr"): LineStream {
    let stream = this.#streams.get(key);
    if (stream === undefined) {
      stream = new LineStream(this.#options.mask, (message, level, time) => {
        if (source === "stderr") this.#remember(message);
        this.#capped({ t: new Date(time).toISOString(), level, source, message });
      });
      this.#streams.set(key, stream);
    }
    return stream;
  }

  #record(frame: LogFrame): void {
    const { m, f } = parseRecord(frame.payload);
    const { mask } = this.#options;
    const line: LogLine = {
      t: new Date(frame.time).toISOString(),
      level: frame.level,
      source: "task",
      message: cut(tidy(mask.whole(m))),
    };
    this.#capped(f === undefined ? line : { ...line, fields: maskJson(f, mask) });
  }

  #remember(message: string): void {
    this.#errorTail.push(message.slice(0, 1000));
    if (this.#errorTail.length > TAIL_LINES) this.#errorTail.shift();
  }

  #capped(line: LogLine): void {
    if (this.#bytes >= this.#options.maxBytes) {
      this.#truncate();
      this.#droppedLines++;
      return;
    }
    this.#write(line);
  }

  #truncate(): void {
    if (this.#truncated) return;
    this.#truncated = true;
    const limit = `${this.#options.maxBytes} bytes`;
    this.engine(
      "warn",
      `The log of this attempt has reached its limit of ${limit}; what follows is dropped.`,
    );
  }

  #write(line: LogLine): void {
    if (this.#file === null) {
      const { key, logs, onError, onPressure } = this.#options;
      this.#file = logs.open(key, { onError, onPressure });
      const opening = this.#options.opening();
      // Dated when the attempt began, although it is written only now. Lines stay in order.
      const begunAt = Math.min(this.#options.begunAt?.() ?? Number.POSITIVE_INFINITY, Date.parse(line.t));
      if (opening !== null) {
        const t = new Date(begunAt).toISOString();
        this.#write({ t, level: "info", source: "engine", message: tidy(opening) });
      }
    }
    const text = `${JSON.stringify(line)}\n`;
    this.#bytes += Buffer.byteLength(text);
    this.#file.append(text);
  }
}

/** Bytes to masked lines. Holds at most one line of bounded length. */
class LineStream {
  readonly #decoder = new StringDecoder("utf8");
  readonly #mask: MaskStream;
  readonly #onLine: (message: string, level: LogLevel, time: number) => void;
  #line = "";
  #cut = 0;
  #level: LogLevel = "info";
  #time = 0;

  constructor(mask: SecretMask, onLine: (message: string, level: LogLevel, time: number) => void) {
    this.#mask = new MaskStream(mask);
    this.#onLine = onLine;
  }

  push(bytes: Buffer, level: LogLevel, time: number): void {
    this.#level = level;
    this.#time = time;
    this.#text(this.#mask.push(this.#decoder.write(bytes)));
  }

  end(): void {
    this.#text(this.#mask.push(this.#decoder.end()) + this.#mask.end());
    if (this.#line !== "" || this.#cut > 0) this.#flush();
  }

  #text(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.#grow(text.slice(from, at));
      this.#flush();
      from = at + 1;
    }
    this.#grow(text.slice(from));
  }

  #grow(part: string): void {
    const room = MAX_LINE_LENGTH - this.#line.length;
    this.#line += part.length <= room ? part : part.slice(0, room);
    this.#cut += Math.max(0, part.length - room);
  }

  #flush(): void {
    const line = this.#line.endsWith("\r") ? this.#line.slice(0, -1) : this.#line;
    this.#onLine(tidy(line) + cutNote(this.#cut), this.#level, this.#time);
    this.#line = "";
    this.#cut = 0;
  }
}

/** Removes what database text columns cannot hold: NUL and lone surrogates. */
export function tidy(text: string): string {
  return text.replaceAll("\u0000", "\ufffd").toWellFormed();
}

/** Truncates a text that is already masked. */
export function cut(text: string, length: number = MAX_LINE_LENGTH): string {
  return text.length <= length ? text : text.slice(0, length).toWellFormed() + cutNote(text.length - length);
}

function cutNote(characters: number): string {
  return characters > 0 ? ` ... (${characters} characters cut)` : "";
}

function parseRecord(payload: Buffer): { m: string; f?: Readonly<Record<string, Json>> } {
  try {
    return JSON.parse(payload.toString("utf8")) as { m: string; f?: Record<string, Json> };
  } catch {
    return { m: payload.toString("utf8") };
  }
}

function maskJson(fields: Readonly<Record<string, Json>>, mask: SecretMask): Record<string, Json> {
  const masked = (value: Json): Json => {
    if (typeof value === "string") return cut(tidy(mask.whole(value)));
    if (Array.isArray(value)) return value.map(masked);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [mask.whole(key), masked(item)]));
  };
  return masked(fields) as Record<string, Json>;
}
