/** The implementation of each call of signals.proto on the service behind it. */
import { EngineError } from "../../service/errors.ts";
import type { Signal } from "../signal.ts";
import { requireForeign } from "../signal.ts";
import type { SignalPlace, SignalService } from "../signal-service.ts";
import { MESSAGE_BYTES } from "./definition.ts";
import {
  type ChangeMessage,
  type FilterMessage,
  fromChange,
  fromDuration,
  fromFilter,
  fromStart,
  fromTimestamp,
  readValue,
  type StartMessage,
  type Timestamp,
  toDeadLetter,
  toPlace,
  toRetry,
  toSentMessage,
  toSignalMessage,
} from "./messages.ts";

type Unary = (request: never, principal: string) => Promise<unknown>;

interface ListRequest {
  readonly filter: FilterMessage | null;
  readonly versionGt?: number;
  readonly versionGte?: number;
  readonly versionLt?: number;
  readonly versionLte?: number;
  readonly timeGt: Timestamp | null;
  readonly timeGte: Timestamp | null;
  readonly timeLt: Timestamp | null;
  readonly timeLte: Timestamp | null;
  readonly descending: boolean;
  readonly limit: number;
  readonly cursor: string;
}

interface HeldRequest {
  readonly name: string;
  readonly holder: string;
  readonly lease: Timestamp | null;
}

const MAX_KEY_PAGE = 1_000;
const LEASE_MS = 6_000;

export function unaryHandlers(service: SignalService): Readonly<Record<string, Unary>> {
  return {
    send: async (request: { signals: NewSignalMessage[] }, principal) => {
      const signals = request.signals.map(({ client, namespace, sender, sequence, ...signal }) =>
        requireForeign({
          key: signal.key,
          value: readValue(signal.value, signal.key),
          namespace: namespace || undefined,
          sender: sender || principal,
          client: client ?? undefined,
          sequence: sequence ?? undefined,
        }),
      );
      return { signals: (await service.send(signals)).map(toSentMessage) };
    },

    list: async (request: ListRequest) => {
      const { signals, next } = await service.list({
        ...fromFilter(request.filter),
        version: {
          gt: request.versionGt,
          gte: request.versionGte,
          lt: request.versionLt,
          lte: request.versionLte,
        },
        time: {
          gt: request.timeGt && fromTimestamp(request.timeGt),
          gte: request.timeGte && fromTimestamp(request.timeGte),
          lt: request.timeLt && fromTimestamp(request.timeLt),
          lte: request.timeLte && fromTimestamp(request.timeLte),
        },
        descending: request.descending,
        limit: request.limit > 0 ? request.limit : undefined,
        cursor: request.cursor || null,
      });
      return { signals: signals.map(toSignalMessage), nextCursor: next ?? "" };
    },

    getPosition: async (request: { start: StartMessage | null }) =>
      toPlace(await placeOf(service, request.start)),

    readKey: async (request: {
      namespace: string;
      key: string;
      sender: string;
      fromVersion: number;
      upToPosition: string;
      limit: number;
    }) => {
      const signals = await service.readKey({
        namespace: request.namespace || "default",
        key: request.key,
        sender: request.sender || undefined,
        from: request.fromVersion,
        upTo: request.upToPosition,
        limit: Math.min(request.limit > 0 ? request.limit : MAX_KEY_PAGE, MAX_KEY_PAGE),
      });
      return { signals: signals.map(toSignalMessage) };
    },

    claimListener: async (
      request: HeldRequest & { host: string; filter: FilterMessage | null; start: StartMessage | null },
    ) => {
      const start = fromStart(request.start);
      const claimed = await service.records.claim({
        ...held(request),
        host: request.host.slice(0, 250),
        filter: fromFilter(request.filter),
        from: start,
      });
      if (claimed === null) return { claimed: false };
      const { hasRedeliveries, retries, start: at } = claimed;
      const place = { ...at, position: `${at.position.tx}-${at.position.id}` };
      return { claimed: true, place: toPlace(place), retries: retries.map(toRetry), hasRedeliveries };
    },

    commitListener: (request: HeldRequest & ChangeMessage) =>
      service.records.commit(held(request), fromChange(request)),

    releaseListener: async (request: HeldRequest) => {
      await service.records.release(held(request));
      return {};
    },

    listDeadLetters: async ({ listener, onlyRetried }: { listener: string; onlyRetried: boolean }) => {
      const letters = onlyRetried
        ? await service.records.redeliveries(listener)
        : await service.deadLetters(listener || undefined);
      return { deadLetters: letters.map(toDeadLetter) };
    },
  };
}

interface NewSignalMessage {
  readonly namespace: string;
  readonly key: string;
  readonly value: string;
  readonly sender: string;
  readonly client?: string | null;
  readonly sequence?: number | null;
}

const BATCH = 500;
const MAX_BATCH = 5_000;
const KEEP_ALIVE_MS = 15_000;

/** The messages of one Listen. */
export async function* listen(
  service: SignalService,
  request: { filter: FilterMessage | null; start: StartMessage | null; batch: number },
  stop: AbortSignal,
): AsyncGenerator<unknown> {
  const place = await placeOf(service, request.start);
  const limit = Math.min(request.batch > 0 ? request.batch : BATCH, MAX_BATCH);
  const subscription = service.subscribe(fromFilter(request.filter), place);
  try {
    // Reports that it is listening, and from where.
    yield { signals: [], position: place.position };
    while (!stop.aborted) {
      const { position, signals } = await subscription.next({ limit, waitMs: KEEP_ALIVE_MS, abort: stop });
      if (stop.aborted) return;
      const pieces = portions(signals);
      for (const [at, piece] of pieces.entries()) {
        const isLast = at === pieces.length - 1;
        yield { signals: piece, position: isLast ? position : piece.at(-1)!.position };
      }
      if (pieces.length === 0) yield { signals: [], position };
    }
  } finally {
    subscription.close();
  }
}

/** Splits signals into messages below the size limit. */
function portions(signals: readonly Signal[]): ReturnType<typeof toSignalMessage>[][] {
  const pieces: ReturnType<typeof toSignalMessage>[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const signal of signals) {
    const message = toSignalMessage(signal);
    const size = Buffer.byteLength(message.value) + 300;
    if (bytes + size > MESSAGE_BYTES) {
      pieces.push([]);
      bytes = 0;
    }
    pieces.at(-1)!.push(message);
    bytes += size;
  }
  return pieces;
}

async function placeOf(service: SignalService, message: StartMessage | null): Promise<SignalPlace> {
  const start = fromStart(message);
  return typeof start === "object" && "position" in start ? start : service.position(start);
}

function held({ holder, lease, name }: HeldRequest) {
  for (const text of [name, holder]) {
    if (text === "" || text.length > 250 || text.includes("\0"))
      throw new EngineError("SIGNAL_INVALID", "A listener needs a name and a holder of 1 to 250 characters.");
  }
  const ttlMs = lease === null ? LEASE_MS : Math.min(Math.max(fromDuration(lease), 100), 600_000);
  return { name, holder, ttlMs };
}
