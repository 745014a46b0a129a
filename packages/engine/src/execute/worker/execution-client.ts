/**
 * The HTTP client of the task execution API. Connections are kept alive; `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are
 * honoured, and a CA can be given. A call fails with `ExecutionError`; its `isTransient` tells whether to repeat it.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

export interface ExecutionClientOptions {
  /** The address of the API. */
  readonly url: string;
  /** A token of the role worker, or the launch token of a pod. */
  readonly token: string;
  /** PEM of an additional CA. */
  readonly ca?: string | undefined;
  readonly timeoutMs?: number;
}

/** Without a byte for this long, the connection is dead: the server answers within a few seconds. */
const TIMEOUT_MS = 10_000;

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
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** The server rejects what was sent: another content may be accepted. */
  get isOfContent(): boolean {
    return this.status === 400 || this.status === 413 || this.status === 422;
  }
}

export class ExecutionClient {
  readonly #options: ExecutionClientOptions;
  readonly #base: URL;
  readonly #agent: HttpAgent | HttpsAgent;

  constructor(options: ExecutionClientOptions) {
    this.#options = options;
    this.#base = new URL(options.url.endsWith("/") ? options.url : `${options.url}/`);
    // `proxyEnv`: Node reads the proxy variables itself.
    const settings = { keepAlive: true, maxSockets: 32, proxyEnv: process.env } as object;
    const { ca } = options;
    this.#agent =
      this.#base.protocol === "https:"
        ? new HttpsAgent({ ...settings, ...(ca !== undefined && { ca }) })
        : new HttpAgent(settings);
  }

  post<T>(path: string, body: unknown, timeoutMs?: number): Promise<T> {
    return this.#json("POST", path, JSON.stringify(body), timeoutMs);
  }

  get<T>(path: string): Promise<T> {
    return this.#json("GET", path, null);
  }

  async delete(path: string): Promise<void> {
    await this.#json("DELETE", path, null);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #json<T>(method: string, path: string, body: string | null, timeoutMs?: number): Promise<T> {
    const response = await this.#send(method, path, body, timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS);
    const text = await textOf(response);
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw problemOf(status, text, `${method} ${this.#base.origin}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  #send(method: string, path: string, body: string | null, timeoutMs: number): Promise<IncomingMessage> {
    const url = new URL(`execution/v1/${path}`, this.#base);
    const request = url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const sent = request(
        url,
        {
          method,
          agent: this.#agent,
          headers: {
            authorization: `Bearer ${this.#options.token}`,
            accept: "application/json",
            ...(body !== null && {
              "content-type": "application/json",
              "content-length": Buffer.byteLength(body),
            }),
          },
        },
        resolve,
      );
      sent.setTimeout(timeoutMs, () => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      sent.once("error", (error) =>
        reject(new ExecutionError(0, "API_UNREACHABLE", `${url.origin}: ${error.message}`)),
      );
      sent.end(body);
    });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  try {
    for await (const piece of response) text += piece as string;
  } catch (error) {
    throw new ExecutionError(0, "API_UNREACHABLE", `the answer was cut off: ${(error as Error).message}`);
  }
  return text;
}

function problemOf(status: number, text: string, what: string): ExecutionError {
  try {
    const { code, detail } = JSON.parse(text) as { code?: string; detail?: unknown };
    const said = typeof detail === "string" ? detail : JSON.stringify(detail);
    return new ExecutionError(status, code ?? "HTTP_ERROR", said ?? `${what}: status ${status}`);
  } catch {
    return new ExecutionError(status, "HTTP_ERROR", `${what}: status ${status}`);
  }
}
