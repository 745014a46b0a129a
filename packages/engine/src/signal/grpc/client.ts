/**
 * A client of the signal service over gRPC: send and listen from any process. Sends are batched while another one is in
 * progress, numbered and retried until they are stored; listeners reconnect and resume at their position.
 *
 *   const signals = SignalClient.connect("grpc://127.0.0.1:8081", { token });
 *   await signals.send([{ key: "watermark", value: { hour: 7 } }]);
 */
import { type Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { EngineError } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { isGrpcAddress } from "../../service/setting-values.ts";
import { accessError, failedError } from "../refusal.ts";
import { awayError, RemoteSignals, type SignalTransport } from "../remote-signals.ts";
import type { SentSignal, SignalStart, SignalToSend } from "../signal.ts";
import type { HeldListener, ListenerRecords, SignalListQuery, SignalPage } from "../signal-service.ts";
import { CHANNEL_OPTIONS, CODE_KEY, SignalsClient } from "./definition.ts";
import {
  type DeadLetterMessage,
  fromDeadLetter,
  fromPlace,
  fromRetry,
  fromSignalMessage,
  fromTimestamp,
  type PlaceMessage,
  type RetryMessage,
  type SentSignalMessage,
  type SignalMessage,
  toChange,
  toDuration,
  toFilter,
  toStart,
  toTimestamp,
} from "./messages.ts";
import { GrpcSubscription } from "./stream.ts";
import { type ClientTls, clientCredentials, isGiven, isTlsFailure, tlsFailure, tlsReason } from "./tls.ts";

export interface SignalClientOptions {
  /** A token of the REST API. */
  readonly token: string;
  /** The default sender of signals; the name of the token if omitted. */
  readonly sender?: string;
  readonly logger?: Logger;
  /** For `grpcs://`: the trusted CA, and the client's certificate. */
  readonly tls?: ClientTls;
  /** Time limit of one call. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

export class SignalClient extends RemoteSignals {
  /** `grpc://host:port`, or `grpcs://host:port` for TLS. Throws SIGNAL_TLS_INVALID if its files are invalid. */
  static connect(address: string, options: SignalClientOptions): SignalClient {
    return new SignalClient(new GrpcTransport(address, options), options);
  }
}

class GrpcTransport implements SignalTransport {
  readonly records: ListenerRecords;
  readonly #address: string;
  readonly #client: Client;
  readonly #metadata = new Metadata();
  readonly #timeoutMs: number;

  constructor(address: string, options: SignalClientOptions) {
    // grpc-js reports an invalid port as a name that does not resolve, which is retried indefinitely.
    if (!isGrpcAddress(address)) {
      throw new EngineError(
        "SIGNAL_SERVICE_ADDRESS",
        `Invalid signal service address "${address.slice(0, 100)}": write it like grpc://host:8081.`,
      );
    }
    const { host: target, protocol } = new URL(address);
    this.#address = address;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    const { tls = {} } = options;
    // A client with certificates must not use plain text because of one missing letter.
    if (protocol === "grpc:" && isGiven(tls))
      throw tlsFailure(address, "write the address with grpcs://.", null);
    const security = protocol === "grpcs:" ? clientCredentials(tls) : credentials.createInsecure();
    this.#client = new SignalsClient(target, security, {
      ...CHANNEL_OPTIONS,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2_000,
    });
    this.#metadata.set("authorization", `Bearer ${options.token}`);
    this.records = this.#recordsOf();
  }

  async send(signals: readonly SignalToSend[]): Promise<SentSignal[]> {
    const messages = signals.map(({ value = null, ...signal }) => ({
      ...signal,
      value: JSON.stringify(value),
    }));
    const answer = await this.#call<{ signals: SentSignalMessage[] }>("send", { signals: messages });
    return answer.signals.map((sent) => ({ ...sent, time: fromTimestamp(sent.time) }));
  }

  async list(query: SignalListQuery): Promise<SignalPage> {
    const { cursor, descending = false, limit = 0, time, version } = query;
    const moment = (date: Date | null | undefined) => (date ? toTimestamp(date) : null);
    const answer = await this.#call<{ signals: SignalMessage[]; nextCursor: string }>("list", {
      filter: toFilter(query),
      versionGt: version?.gt,
      versionGte: version?.gte,
      versionLt: version?.lt,
      versionLte: version?.lte,
      timeGt: moment(time?.gt),
      timeGte: moment(time?.gte),
      timeLt: moment(time?.lt),
      timeLte: moment(time?.lte),
      descending,
      limit,
      cursor: cursor ?? "",
    });
    return { signals: answer.signals.map(fromSignalMessage), next: answer.nextCursor || null };
  }

  async position(start: SignalStart) {
    return fromPlace(await this.#call<PlaceMessage>("getPosition", { start: toStart(start) }));
  }

  subscribe(...[filter, place]: Parameters<SignalTransport["subscribe"]>) {
    return new GrpcSubscription({
      open: (request) => {
        const stream = this.#client.makeServerStreamRequest(
          "/tradewind.signals.v1.Signals/Listen",
          SignalsClient.service.Listen!.requestSerialize,
          SignalsClient.service.Listen!.responseDeserialize,
          request,
          this.#metadata,
        );
        return stream;
      },
      explain: (error) => this.#explain(error),
      filter,
      place,
    });
  }

  async readKey(query: Parameters<SignalTransport["readKey"]>[0]) {
    const { from, key, limit, namespace, sender = "", upTo } = query;
    const request = { namespace, key, sender, limit, fromVersion: from, upToPosition: upTo };
    const answer = await this.#call<{ signals: SignalMessage[] }>("readKey", request);
    return answer.signals.map(fromSignalMessage);
  }

  deadLetters(listener = "", onlyRetried = false) {
    return this.#call<{ deadLetters: DeadLetterMessage[] }>("listDeadLetters", {
      listener,
      onlyRetried,
    }).then((answer) => answer.deadLetters.map(fromDeadLetter));
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  #recordsOf(): ListenerRecords {
    const held = ({ holder, name, ttlMs }: HeldListener) => ({ name, holder, lease: toDuration(ttlMs) });
    return {
      claim: async ({ filter, from, host, ...claim }) => {
        const answer = await this.#call<{
          claimed: boolean;
          place: PlaceMessage | null;
          retries: RetryMessage[];
          hasRedeliveries: boolean;
        }>("claimListener", { ...held(claim), host, filter: toFilter(filter), start: toStart(from) });
        if (!answer.claimed || answer.place === null) return null;
        const { afterVersion = null, position, since = null } = fromPlace(answer.place);
        const [tx, id] = position.split("-");
        return {
          start: { position: { tx: tx!, id: Number(id) }, afterVersion, since },
          retries: answer.retries.map(fromRetry),
          hasRedeliveries: answer.hasRedeliveries,
        };
      },
      commit: (claim, change) => this.#call("commitListener", { ...held(claim), ...toChange(change) }),
      redeliveries: (name) => this.deadLetters(name, true),
      release: async (claim) => {
        await this.#call("releaseListener", held(claim));
      },
    };
  }

  #call<T>(name: string, request: object): Promise<T> {
    const { path, requestSerialize, responseDeserialize } = Object.values(SignalsClient.service).find(
      ({ originalName }) => originalName === name,
    )!;
    const deadline = new Date(Date.now() + this.#timeoutMs);
    return new Promise<T>((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        this.#metadata,
        { deadline },
        (error, answer) => {
          if (error === null) resolve(answer as T);
          else reject(this.#explain(error));
        },
      );
    });
  }

  #explain(error: ServiceError): EngineError {
    const code = error.metadata?.get(CODE_KEY)[0];
    if (error.code === status.UNAVAILABLE && isTlsFailure(error.details))
      return tlsFailure(this.#address, tlsReason(error.details), error);
    if (PASSING.has(error.code)) return awayError(this.#address, error.details, error);
    if (error.code === status.UNAUTHENTICATED || error.code === status.PERMISSION_DENIED)
      return accessError(this.#address, error.details, error.code === status.PERMISSION_DENIED, error);
    if (typeof code === "string") return new EngineError(code, error.details, { cause: error });
    return failedError(
      this.#address,
      `${status[error.code]}: ${error.details}`,
      REFUSED.has(error.code),
      error,
    );
  }
}

const PASSING: ReadonlySet<number> = new Set([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.ABORTED,
  status.RESOURCE_EXHAUSTED,
  status.CANCELLED,
]);

/** Retrying would not help. INTERNAL and UNKNOWN are absent: a failure of the server may be temporary. */
const REFUSED: ReadonlySet<number> = new Set([
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.OUT_OF_RANGE,
  status.UNIMPLEMENTED,
]);
