/** Reads PostgreSQL's protocol in a proxy: which requests write, and which response reports a commit. */

/** The requests between two synchronisation points. The server answers each group with one ReadyForQuery, in order. */
interface Group {
  readonly writes: boolean;
}

const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;
const WRITE = /\b(insert|update|delete|merge)\b/i;

export class RequestReader {
  readonly groups: Group[] = [];
  readonly #writingStatements = new Map<string, boolean>();
  #rest: Buffer = Buffer.alloc(0);
  #started = false;
  #writes = false;

  /** The bytes to forward, and the proxy's own response: it offers no encryption. */
  read(chunk: Buffer): { forward: Buffer; reply: Buffer } {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const forward: Buffer[] = [];
    const reply: Buffer[] = [];
    for (;;) {
      // The first message of a connection has no type.
      const head = this.#started ? 1 : 0;
      if (this.#rest.length < head + 4) break;
      const length = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < length) break;
      const message = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      if (this.#started) {
        this.#record(String.fromCharCode(message[0] as number), message.subarray(5));
      } else if ([SSL_REQUEST, GSS_REQUEST].includes(message.readUInt32BE(4))) {
        reply.push(Buffer.from("N"));
        continue;
      } else {
        this.#started = true;
        // Answered by the ReadyForQuery at the end of the session start.
        this.groups.push({ writes: false });
      }
      forward.push(message);
    }
    return { forward: Buffer.concat(forward), reply: Buffer.concat(reply) };
  }

  #record(type: string, body: Buffer): void {
    if (type === "P") {
      const [name = "", text = ""] = strings(body, 2);
      this.#writingStatements.set(name, WRITE.test(text));
    } else if (type === "B") {
      const [, name = ""] = strings(body, 2);
      this.#writes ||= this.#writingStatements.get(name) ?? false;
    } else if (type === "Q") {
      this.groups.push({ writes: WRITE.test(strings(body, 1)[0] ?? "") });
    } else if (type === "S") {
      this.groups.push({ writes: this.#writes });
      this.#writes = false;
    }
  }
}

export class AnswerReader {
  readonly #groups: Group[];
  #rest: Buffer = Buffer.alloc(0);
  #failed = false;
  #committed = false;

  constructor(groups: Group[]) {
    this.#groups = groups;
  }

  /** Complete messages in order; `commits` marks the message without which the client cannot know of the commit. */
  read(chunk: Buffer): { bytes: Buffer; commits: boolean }[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const pieces: { bytes: Buffer; commits: boolean }[] = [];
    while (this.#rest.length >= 5) {
      const length = 1 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < length) break;
      const bytes = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      pieces.push({
        bytes,
        commits: this.#isCommit(String.fromCharCode(bytes[0] as number), bytes.subarray(5)),
      });
    }
    return pieces;
  }

  #isCommit(type: string, body: Buffer): boolean {
    if (type === "E") this.#failed = true;
    if (type === "C" && strings(body, 1)[0] === "COMMIT") {
      this.#committed = true;
      return true;
    }
    if (type !== "Z") return false;
    const group = this.#groups.shift();
    const idle = String.fromCharCode(body[0] as number) === "I";
    const commits = idle && group?.writes === true && !this.#failed && !this.#committed;
    this.#failed = false;
    this.#committed = false;
    return commits;
  }
}

function strings(body: Buffer, count: number): string[] {
  const found: string[] = [];
  let start = 0;
  while (found.length < count) {
    const end = body.indexOf(0, start);
    if (end === -1) break;
    found.push(body.toString("utf8", start, end));
    start = end + 1;
  }
  return found;
}
