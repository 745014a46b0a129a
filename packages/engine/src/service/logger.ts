import { messageOf } from "./errors.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

export interface LoggerOptions {
  readonly level?: LogLevel;
  /** Destination. Default: standard error. */
  readonly stream?: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** "pretty" for people, "json" (one object per line) for machines. */
  readonly format?: "pretty" | "json";
}

export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function createLogger(options: LoggerOptions = {}): Logger {
  const stream = options.stream ?? process.stderr;
  keepAliveWithout(stream);
  const colour = stream.isTTY === true && !process.env["NO_COLOR"];
  const render = options.format === "json" ? jsonLine : (line: Line) => prettyLine(line, colour);
  return new StreamLogger({ least: LOG_LEVELS.indexOf(options.level ?? "info"), stream, render }, {});
}

/** For tests and for parts without a logger. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

interface Line {
  readonly time: Date;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

interface Sink {
  readonly least: number;
  readonly stream: NodeJS.WritableStream;
  readonly render: (line: Line) => string;
}

class StreamLogger implements Logger {
  readonly #sink: Sink;
  readonly #fields: LogFields;

  constructor(sink: Sink, fields: LogFields) {
    this.#sink = sink;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#write("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write("error", message, fields);
  }

  child(fields: LogFields): Logger {
    return new StreamLogger(this.#sink, { ...this.#fields, ...fields });
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (LOG_LEVELS.indexOf(level) < this.#sink.least) return;
    const line = { time: new Date(), level, message, fields: { ...this.#fields, ...fields } };
    this.#sink.stream.write(`${this.#sink.render(line)}\n`);
  }
}

function jsonLine({ time, level, message, fields }: Line): string {
  return stringify({ ...fields, time: time.toISOString(), level, message });
}

const COLOURS: Readonly<Record<LogLevel, number>> = { debug: 90, info: 36, warn: 33, error: 31 };

function prettyLine({ time, level, message, fields }: Line, colour: boolean): string {
  const paint = (text: string, code: number) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const head = `${paint(time.toISOString().slice(11, 23), 90)} ${paint(level.toUpperCase().padEnd(5), COLOURS[level])}`;
  const pairs: string[] = [];
  const below: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    const name = paint(`${key}=`, 90);
    const stack = value instanceof Error && level === "error" ? value.stack : undefined;
    const text = value instanceof Error ? value.message : value;
    const hasLines = typeof text === "string" && text.trim().includes("\n");
    if (!hasLines) pairs.push(`${name}${prettyValue(value)}`);
    if (stack !== undefined) below.push(indent(stack));
    // What has lines of its own (a code frame, the last words of a process) is read as lines.
    else if (hasLines) below.push(`    ${name}`, indent(text.trimEnd()));
  }
  return [[head, oneLine(message), ...pairs].join(" "), ...below].join("\n");
}

function prettyValue(value: unknown): string {
  if (value instanceof Error) return stringify(value.message);
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return stringify(value);
}

/** A message may contain text of users: it must not forge a second line or move the cursor. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (char) => JSON.stringify(char).slice(1, -1));
}

/** Further lines of an entry are indented, so none looks like the start of an entry. Tabs stay, for alignment. */
function indent(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => `    ${line.split("\t").map(oneLine).join("\t")}`.trimEnd())
    .join("\n");
}

/** Never throws: a value that has no JSON (a cycle, a bigint) must not turn a log line into a crash. */
function stringify(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_key, item: unknown) => {
        if (typeof item === "bigint") return `${item}`;
        return item instanceof Error ? errorObject(item) : item;
      }) ?? "undefined"
    );
  } catch (error) {
    return JSON.stringify(`[cannot be logged: ${messageOf(error)}]`);
  }
}

function errorObject(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return { name, code, message, stack, cause };
}

const tended = new WeakSet<object>();

/** A closed output stream (`| head`) must not end the service. */
function keepAliveWithout(stream: NodeJS.WritableStream): void {
  if (tended.has(stream)) return;
  tended.add(stream);
  stream.on("error", () => {});
}
