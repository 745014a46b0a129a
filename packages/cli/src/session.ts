/** The context of a command: global options, server, terminal, and output of results. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { Client, type Listed } from "./client/client.ts";
import { findTarget, homeFolder } from "./client/target.ts";
import { Interrupted, usageError } from "./errors.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { type Column, renderFields, renderTable } from "./output/table.ts";
import { wrapLine } from "./output/wrap.ts";
import type { ColourChoice, Streams, Terminal } from "./terminal.ts";

export type OutputFormat = "table" | "json" | "yaml";
/** For `dags graph` only. */
type GraphFormat = "mermaid" | "dot" | "svg";

/** Options of every command, before or after its name. */
export interface GlobalOptions {
  readonly home?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly output?: OutputFormat | GraphFormat | undefined;
  readonly json?: boolean | undefined;
  /** The time zone of displayed dates. */
  readonly tz?: string | undefined;
  readonly color?: ColourChoice | undefined;
  readonly yes?: boolean | undefined;
  readonly quiet?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

/** The process of a command, or its replacement in a test. */
export interface Host extends Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Calls the listener on every signal until the returned function is called. */
  onSignal(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
  /** Ends the process at once, after a second signal. */
  exit(code: number): void;
}

export type Fields = readonly (readonly [string, string | null | undefined])[];

export class Session {
  readonly host: Host;
  readonly terminal: Terminal;
  /** The exit code if the command returns without an error. */
  exitCode: ExitCode = EXIT.ok;
  readonly #options: () => GlobalOptions;
  #client: Client | undefined;

  constructor(host: Host, terminal: Terminal, options: () => GlobalOptions) {
    this.host = host;
    this.terminal = terminal;
    this.#options = options;
  }

  get options(): GlobalOptions {
    return this.#options();
  }

  get home(): string {
    return homeFolder(this.options, this.host.env);
  }

  /** True if DATABASE_URL is set or the home has a database. Read-only commands create none: the home may be mistyped. */
  get hasDatabase(): boolean {
    return Boolean(this.host.env.DATABASE_URL) || existsSync(join(this.home, "postgres"));
  }

  get format(): OutputFormat {
    const { json, output } = this.options;
    if (json || output === "json") return "json";
    return output === "yaml" ? "yaml" : "table";
  }

  get client(): Client {
    this.#client ??= new Client(findTarget(this.options, this.host.env));
    return this.#client;
  }

  /** A message for the user, unless --quiet is set. */
  note(text: string): void {
    if (!this.options.quiet) this.terminal.note(text);
  }

  /** The same for a long sentence, which is wrapped on a terminal. */
  noteSentence(text: string): void {
    for (const line of wrapLine(text, this.terminal.noteWidth)) this.note(line);
  }

  /** A sentence of data, wrapped on a terminal. */
  printSentence(text: string): void {
    for (const line of wrapLine(text, this.terminal.width)) this.terminal.data(line);
  }

  /** A list: the API's objects as JSON or YAML, or a table. */
  async printList<T>(listed: Listed<T>, columns: readonly Column<T>[], empty: string): Promise<void> {
    if (this.format !== "table") return this.#printValue(listed.items);
    if (listed.items.length === 0) return this.note(empty);
    const [head, ...lines] = renderTable(listed.items, columns, this.terminal.width);
    this.terminal.data(this.terminal.paint("bold", head!));
    for (const line of lines) this.terminal.data(line);
    if (listed.items.length < listed.total) {
      this.note(`${listed.items.length} of ${listed.total} shown; --limit 0 shows all.`);
    }
  }

  /** One object. */
  async printObject(value: unknown, fields: Fields): Promise<void> {
    if (this.format !== "table") return this.#printValue(value);
    for (const line of renderFields(fields, (name) => this.terminal.paint("dim", name)))
      this.terminal.data(line);
  }

  /** The result of a change: its object as JSON or YAML, otherwise one sentence on stderr. */
  async printDone(value: unknown, sentence: string): Promise<void> {
    if (this.format !== "table") return this.#printValue(value);
    this.note(sentence);
  }

  /** Asks before a destructive change. Without a terminal, --yes is required. */
  async confirm(question: string): Promise<void> {
    if (this.options.yes) return;
    const { stdin, stderr, env } = this.host;
    if (!stdin.isTTY || !stderr.isTTY || env.CI) {
      throw usageError(
        `${question} Cannot ask without a terminal; nothing was changed.`,
        "add --yes to confirm",
      );
    }
    const prompt = createInterface({ input: stdin, output: process.stderr, terminal: true });
    // Ctrl-C rejects the question; Ctrl-D closes the input and leaves the question pending.
    const closed = new Promise<never>((_, reject) => prompt.once("close", () => reject(new Interrupted())));
    try {
      const asked = prompt.question(`${question} [y/N] `).catch(() => closed);
      const answer = await Promise.race([asked, closed]);
      if (!/^y(es)?$/i.test(answer.trim())) throw usageError("nothing was changed.");
    } finally {
      prompt.close();
    }
  }

  /** Runs work that the first Ctrl-C aborts; a second one ends the process. */
  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const release = this.host.onSignal(["SIGINT", "SIGTERM"], () => {
      if (controller.signal.aborted) this.host.exit(EXIT.interrupted);
      controller.abort();
    });
    try {
      return await work(controller.signal);
    } finally {
      release();
    }
  }

  async #printValue(value: unknown): Promise<void> {
    if (this.format === "json") return this.terminal.data(JSON.stringify(value ?? null, null, 2));
    const { stringify } = await import("yaml");
    this.terminal.data(stringify(value ?? null, { lineWidth: 0 }).trimEnd());
  }
}
