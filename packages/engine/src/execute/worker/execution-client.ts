/**
 * The HTTP client of the task execution API. Connections are kept alive; `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are
 * honoured, and a CA can be given. A call fails with `ExecutionError`; its `isTransient` tells whether to repeat it.
 */
import { createReadStream } from "node:fs";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { getCACertificates } from "node:tls";

export interface ExecutionClientOptions {
  /** The address of the API. */
  readonly url: string;
  /** A token of the role worker, or the launch token of a pod. */
  readonly token: string;
  /** PEM of an additional CA. */
  readonly ca?: string | undefined;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** The time without a byte in either direction; the server stores an output before it answers. */
const TRANSFER_SILENCE_MS = 300_000;
/** The header of the attempt token. */
const ATTEMPT = "tradewind-attempt";

export class ExecutionError extends Error {
  readonly code: string;
  /** 0: there was no answer. */
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** The server is away, restarting or overloaded: the same call may succeed later. */
  get isTransient(): boolean {
    // Of a store, the server has repeated its own calls.
    if (this.code.startsWith("OUTPUT_")) return false;
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** The server rejects what was sent: another content may be accepted. */
  get isOfContent(): boolean {
    return this.status === 400 || this.status === 413 || this.status === 422;
  }
}

interface Sent {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string | Readable;
  readonly timeoutMs?: number;
  /** A large transfer: limited by silence instead of time, and on connections of its own. */
  readonly isTransfer?: boolean;
}

export class ExecutionClient {
  readonly #options: ExecutionClientOptions;
  readonly #base: URL;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #transferAgent: HttpAgent | HttpsAgent;

  constructor(options: ExecutionClientOptions) {
    this.#options = options;
    this.#base = new URL(options.url.endsWith("/") ? options.url : `${options.url}/`);
    this.#agent = this.#newAgent();
    this.#transferAgent = this.#newAgent();
  }

  post<T>(path: string, body: unknown, timeoutMs?: number): Promise<T> {
    const headers = { "content-type": "application/json" };
    const timeout = timeoutMs === undefined ? {} : { timeoutMs };
    return this.#json({ method: "POST", path, headers, body: JSON.stringify(body), ...timeout });
  }

  get<T>(path: string): Promise<T> {
    return this.#json({ method: "GET", path });
  }

  async delete(path: string): Promise<void> {
    await this.#json({ method: "DELETE", path });
  }

  /** @param attempt The attempt token. */
  async upload<T>(path: string, attempt: string, file: string, bytes: number): Promise<T> {
    const body = createReadStream(file);
    const headers = {
      "content-type": "application/octet-stream",
      "content-length": bytes,
      [ATTEMPT]: attempt,
    };
    try {
      return await this.#json({ method: "POST", path, headers, body, isTransfer: true });
    } finally {
      body.destroy();
    }
  }

  /** @param attempt The attempt token. */
  async *download(path: string, attempt: string): AsyncGenerator<Buffer> {
    const response = await this.#send({
      method: "GET",
      path,
      headers: { [ATTEMPT]: attempt },
      isTransfer: true,
    });
    if (response.statusCode !== 200) throw problemOf(response, await textOf(response), `GET ${path}`);
    try {
      for await (const piece of response) yield piece as Buffer;
    } catch (error) {
      throw cutOff(error);
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#transferAgent.destroy();
  }

  #newAgent(): HttpAgent | HttpsAgent {
    // `proxyEnv`: Node reads the proxy variables itself.
    const settings = { keepAlive: true, maxSockets: 32, proxyEnv: process.env } as object;
    const { ca } = this.#options;
    if (this.#base.protocol !== "https:") return new HttpAgent(settings);
    // `ca` replaces the CAs that Node trusts.
    return new HttpsAgent({ ...settings, ...(ca !== undefined && { ca: [...getCACertificates(), ca] }) });
  }

  async #json<T>(sent: Sent): Promise<T> {
    const response = await this.#send(sent);
    const text = await textOf(response);
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw problemOf(response, text, `${sent.method} ${this.#base.origin}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  #send({ body, headers, isTransfer = false, method, path, timeoutMs }: Sent): Promise<IncomingMessage> {
    const url = new URL(`execution/v1/${path}`, this.#base);
    const request = url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const agent = isTransfer ? this.#transferAgent : this.#agent;
      const length = typeof body === "string" && { "content-length": Buffer.byteLength(body) };
      const authorization = `Bearer ${this.#options.token}`;
      const sent = request(
        url,
        { method, agent, headers: { accept: "application/json", authorization, ...length, ...headers } },
        resolve,
      );
      const fail = (error: Error) =>
        reject(new ExecutionError(0, "API_UNREACHABLE", `${url.origin}: ${error.message}`));
      const silenceMs = isTransfer
        ? TRANSFER_SILENCE_MS
        : (timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS);
      sent.setTimeout(silenceMs, () => sent.destroy(new Error(`no answer within ${silenceMs} ms`)));
      sent.on("error", fail);
      if (!(body instanceof Readable)) sent.end(body);
      else {
        body.once("error", (error) => {
          // The file of this machine: no repetition helps.
          reject(error);
          sent.destroy();
        });
        body.pipe(sent);
      }
    });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  try {
    for await (const piece of response) text += piece as string;
  } catch (error) {
    throw cutOff(error);
  }
  return text;
}

function cutOff(error: unknown): ExecutionError {
  return new ExecutionError(0, "API_UNREACHABLE", `the answer was cut off: ${(error as Error).message}`);
}

function problemOf({ statusCode: status = 0 }: IncomingMessage, text: string, what: string): ExecutionError {
  try {
    const { code, detail } = JSON.parse(text) as { code?: string; detail?: unknown };
    const said = typeof detail === "string" ? detail : JSON.stringify(detail);
    return new ExecutionError(status, code ?? "HTTP_ERROR", said ?? `${what}: status ${status}`);
  } catch {
    return new ExecutionError(status, "HTTP_ERROR", `${what}: status ${status}`);
  }
}
