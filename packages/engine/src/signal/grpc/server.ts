/**
 * The signal service over gRPC. A listener that does not read receives no more than the connection buffers; later signals
 * stay in the log. All streams of a caller end with its connection, and with the server.
 */
import { once } from "node:events";
import {
  Metadata,
  Server,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Service } from "../../service/service.ts";
import { TokenWatch } from "../../service/token-watch.ts";
import { CommitUnknownError, isTransient, sqlState } from "../../store/database/database.ts";
import type { SignalService } from "../signal-service.ts";
import { CHANNEL_OPTIONS, CODE_KEY, SIGNALS_SERVICE } from "./definition.ts";
import { listen, unaryHandlers } from "./handlers.ts";
import { isGiven, type ServerTls, serverCredentials } from "./tls.ts";

export interface GrpcServerOptions {
  readonly service: SignalService;
  /** The name of a token's owner; undefined if the token is unknown. */
  readonly authenticate: (token: string) => Promise<string | undefined>;
  readonly host: string;
  readonly port: number;
  /** Omitted: without TLS. */
  readonly tls?: ServerTls;
  readonly logger: Logger;
}

const GRACE_MS = 2_000;

export class GrpcSignalServer implements Service {
  readonly name = "signal server";
  readonly #options: GrpcServerOptions;
  readonly #closing = new AbortController();
  readonly #tokens: TokenWatch;
  #server: Server | null = null;
  #port = 0;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#tokens = new TokenWatch(async (token) => (await options.authenticate(token)) !== undefined);
  }

  /** The address it listens on; with port 0, the assigned port. */
  get address(): string {
    return `${this.#options.host.includes(":") ? `[${this.#options.host}]` : this.#options.host}:${this.#port}`;
  }

  /** In the form that clients use. */
  get url(): string {
    return `${isGiven(this.#options.tls ?? {}) ? "grpcs" : "grpc"}://${this.address}`;
  }

  async start(): Promise<void> {
    const { host, logger, port, tls = {} } = this.#options;
    const credentials = serverCredentials(tls);
    const server = new Server({ ...CHANNEL_OPTIONS, "grpc.keepalive_permit_without_calls": 1 });
    server.addService(SIGNALS_SERVICE, this.#implementation());
    const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.#port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(target, credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(addressError(target, error));
      });
    });
    this.#server = server;
    logger.info("signal server is listening", { url: this.url });
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    // Connections without a session, such as an unfinished TLS handshake, are not tracked and not awaited.
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => {
        server.forceShutdown();
        resolve();
      }, GRACE_MS);
      server.tryShutdown(() => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #implementation() {
    const unary = Object.entries(unaryHandlers(this.#options.service)).map(([name, handler]) => [
      name,
      (call: ServerUnaryCall<never, unknown>, done: sendUnaryData<unknown>) => {
        this.#principal(call.metadata)
          .then((principal) => handler(call.request, principal))
          .then(
            (answer) => done(null, answer),
            (error) => done(this.#failure(name, error)),
          );
      },
    ]);
    return { ...Object.fromEntries(unary), listen: (call: ListenCall) => void this.#listen(call) };
  }

  async #listen(call: ListenCall): Promise<void> {
    const gone = new AbortController();
    for (const event of ["cancelled", "close", "error"]) call.on(event, () => gone.abort());
    const revoked = new AbortController();
    const stop = AbortSignal.any([gone.signal, revoked.signal, this.#closing.signal]);
    let release = () => {};
    try {
      await this.#principal(call.metadata);
      release = this.#tokens.watch(tokenOf(call.metadata) ?? "", () => revoked.abort());
      for await (const message of listen(this.#options.service, call.request, stop)) {
        if (!call.write(message)) await once(call, "drain", { signal: stop });
      }
      revoked.signal.throwIfAborted();
      if (this.#closing.signal.aborted)
        throw new EngineError("SIGNAL_SERVICE_CLOSED", "The signal server is stopping.");
      call.end();
    } catch (error) {
      const cause = revoked.signal.aborted
        ? new EngineError("UNAUTHENTICATED", "The token was revoked or has expired")
        : stopped(error, this.#closing.signal);
      if (!gone.signal.aborted) call.emit("error", this.#failure("listen", cause));
    } finally {
      release();
    }
  }

  async #principal(metadata: Metadata): Promise<string> {
    const token = tokenOf(metadata);
    const name = token === null ? undefined : await this.#options.authenticate(token);
    if (name !== undefined) return name;
    throw new EngineError(
      "UNAUTHENTICATED",
      token === null
        ? "Send the token as metadata authorization: Bearer <token>"
        : "The token is unknown or has expired",
    );
  }

  #failure(call: string, error: unknown): Partial<ServiceError> {
    const code = error instanceof EngineError ? error.code : null;
    const known = code === null ? undefined : STATUS[code];
    const metadata = new Metadata();
    if (code !== null && known !== undefined) {
      metadata.set(CODE_KEY, code);
      return { code: known, details: messageOf(error), metadata };
    }
    if (isTransient(error) || error instanceof CommitUnknownError || BUSY.has(sqlState(error) ?? ""))
      return { code: status.UNAVAILABLE, details: "The database does not answer at the moment.", metadata };
    this.#options.logger.error("a call of the signal server failed", {
      call,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    return { code: status.INTERNAL, details: "Internal error. The server's log has the details.", metadata };
  }
}

type ListenCall = ServerWritableStream<Parameters<typeof listen>[1], unknown>;

const STATUS: Readonly<Record<string, status>> = {
  SIGNAL_INVALID: status.INVALID_ARGUMENT,
  SIGNAL_LISTENER_LOST: status.FAILED_PRECONDITION,
  SIGNAL_POSITION_INVALID: status.INVALID_ARGUMENT,
  SIGNAL_SEQUENCE_REUSED: status.ALREADY_EXISTS,
  SIGNAL_SERVICE_AWAY: status.UNAVAILABLE,
  SIGNAL_SERVICE_CLOSED: status.UNAVAILABLE,
  UNAUTHENTICATED: status.UNAUTHENTICATED,
};

/** Serialisation failure, deadlock, lock timeout, statement timeout. */
const BUSY: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "57014"]);

function tokenOf(metadata: Metadata): string | null {
  const [value] = metadata.get("authorization");
  return /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(String(value ?? ""))?.[1] ?? null;
}

/** The error of a call in progress when the server began to stop. */
function stopped(error: unknown, closing: AbortSignal): unknown {
  if (!closing.aborted) return error;
  return new EngineError("SIGNAL_SERVICE_CLOSED", "The signal server is stopping.", { cause: error });
}

function addressError(target: string, cause: Error): EngineError {
  return new EngineError(
    "SIGNAL_SERVER_ADDRESS",
    `The signal server cannot listen on ${target}: ${cause.message}. Choose another with --host and --port.`,
    { cause },
  );
}
