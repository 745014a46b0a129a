/** Parses a server's replies from the bytes of its socket: one line or several, each with a code of three digits. */

export interface SmtpReply {
  readonly code: number;
  /** Without the code. */
  readonly lines: readonly string[];
}

/** Longer than any valid reply: a server that sends more is no mail server. */
const MAX_REPLY = 64 * 1024;

export class SmtpReplies {
  #rest = "";
  #lines: string[] = [];

  /** The replies that this chunk completes. Throws if the text is not SMTP. */
  read(chunk: string): SmtpReply[] {
    const found: SmtpReply[] = [];
    const parts = (this.#rest + chunk).split("\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const [, code, separator, text = ""] = /^([2-5]\d\d)([ -]?)(.*?)\r?$/s.exec(part) ?? [];
      if (code === undefined) throw new Error(`the server does not speak SMTP: ${part.trim().slice(0, 80)}`);
      this.#lines.push(text);
      if (separator === "-") continue;
      found.push({ code: Number(code), lines: this.#lines });
      this.#lines = [];
    }
    const held = this.#rest.length + this.#lines.reduce((sum, line) => sum + line.length, 0);
    if (held > MAX_REPLY) throw new Error("the server's reply does not end");
    return found;
  }
}
