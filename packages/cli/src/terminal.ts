/**
 * Output of a command: data to stdout, everything else to stderr, so that a pipe gets only data. The text comes from DAG
 * files, logs and other people: its control sequences never reach the terminal.
 */
import { stripVTControlCharacters, styleText } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "blue" | "magenta";
export type ColourChoice = "auto" | "always" | "never";

/** The used part of a stream: of a process, or of a test. */
interface Sink {
  write(text: string): unknown;
  /** For a stream that can be full: `write` returned false. */
  once?(event: "drain", listener: () => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Streams {
  readonly stdout: Sink;
  readonly stderr: Sink;
}

export class Terminal {
  readonly #streams: Streams;
  readonly #env: NodeJS.ProcessEnv;
  #choice: ColourChoice = "auto";
  /** Whether the last line on stderr is a status that the next output must overwrite. */
  #statusShown = false;

  constructor(streams: Streams, env: NodeJS.ProcessEnv) {
    this.#streams = streams;
    this.#env = env;
  }

  chooseColour(choice: ColourChoice): void {
    this.#choice = choice;
  }

  /** A line of data. */
  data(text: string): void {
    this.#clearStatus();
    this.#streams.stdout.write(`${text}\n`);
  }

  /** Data unchanged, e.g. the pieces of a log. */
  raw(text: string): void {
    this.#clearStatus();
    this.#streams.stdout.write(text);
  }

  /** Like `raw`, but waits for free buffer space. For output that may not fit into memory. */
  async pour(text: string): Promise<void> {
    this.#clearStatus();
    const { stdout } = this.#streams;
    if (stdout.write(text) === false && stdout.once)
      await new Promise<void>((resolve) => stdout.once?.("drain", resolve));
  }

  /** A message for the user, possibly with foreign text. */
  note(text: string): void {
    this.#clearStatus();
    this.#streams.stderr.write(`${plainText(text, this.colour("stderr"))}\n`);
  }

  /** A line that the next one replaces. Prints nothing where lines cannot be replaced: callers print a note if it matters. */
  status(text: string): void {
    if (!this.liveStatus) return;
    const width = columnsOf(this.#streams.stderr);
    this.#streams.stderr.write(`\r\u001b[2K${fitLine(text, width - 1)}`);
    this.#statusShown = true;
  }

  /** Columns for a status; undefined where lines cannot be replaced. */
  get statusWidth(): number | undefined {
    return this.liveStatus ? columnsOf(this.#streams.stderr) - 1 : undefined;
  }

  get liveStatus(): boolean {
    return this.#streams.stderr.isTTY === true && this.#env.TERM !== "dumb";
  }

  /** Columns for a table; undefined if stdout is no terminal, so nothing may be cut. */
  get width(): number | undefined {
    return this.#streams.stdout.isTTY ? columnsOf(this.#streams.stdout) : undefined;
  }

  /** The same for stderr. */
  get noteWidth(): number | undefined {
    return this.#streams.stderr.isTTY ? columnsOf(this.#streams.stderr) : undefined;
  }

  paint(style: Style, text: string): string {
    return this.colour("stdout") ? styleText(style, text, { validateStream: false }) : text;
  }

  paintNote(style: Style, text: string): string {
    return this.colour("stderr") ? styleText(style, text, { validateStream: false }) : text;
  }

  colour(stream: "stdout" | "stderr"): boolean {
    if (this.#choice !== "auto") return this.#choice === "always";
    if (this.#env.NO_COLOR) return false;
    if (this.#env.FORCE_COLOR) return this.#env.FORCE_COLOR !== "0";
    return this.#streams[stream].isTTY === true && this.#env.TERM !== "dumb";
  }

  #clearStatus(): void {
    if (!this.#statusShown) return;
    this.#statusShown = false;
    this.#streams.stderr.write("\r\u001b[2K");
  }
}

/** A terminal of unknown width reports nothing or 0: `script`, some containers and consoles. */
function columnsOf({ columns }: Sink): number {
  return columns || 80;
}

/** One line of foreign text, safe for a terminal: no escape sequences, control characters or line breaks. */
export function plainLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are matched on purpose
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

/** Foreign text of several lines: optionally keeps colours, removes everything else that controls the terminal. */
export function plainText(text: string, keepColour: boolean): string {
  if (!keepColour) return dropControls(stripVTControlCharacters(text));
  return text
    .split(COLOURS)
    .map((part, index) => (index % 2 === 1 ? part : dropControls(stripVTControlCharacters(part))))
    .join("");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are matched on purpose
const COLOURS = /(\u001b\[[0-9;]*m)/;

function dropControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are matched on purpose
  return text.replace(/\r\n/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
}

function fitLine(text: string, width: number): string {
  const bare = stripVTControlCharacters(text);
  return bare.length <= width ? text : `${bare.slice(0, Math.max(0, width - 1))}…`;
}
