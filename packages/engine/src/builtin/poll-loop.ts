/**
 * The loop of a trigger that polls the outside world: the first time at once, then every interval, with the backoff of
 * poll-backoff.ts after a failure. Its client is opened again after every failure, so that a changed connection (a new
 * password, another host) is used without a restart.
 *
 * It fires when its condition holds, and again when the condition has returned (watches.ts). A wait uses the first event
 * and stops the trigger; a schedule continues.
 */
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerHost } from "@tradewind/sdk/program";
import { Pause, untilAborted, withDeadline } from "./abort.ts";
import type { Reader } from "./argument-readers.ts";
import { type BuiltinHost, type BuiltinKind, builtinKind, type Fired } from "./builtin-kind.ts";
import { PollBackoff, spread } from "./poll-backoff.ts";
import {
  type Listing,
  type Place,
  type Seen,
  StateWatch,
  ThingWatch,
  type View,
  type Watch,
} from "./watches.ts";

/** Time limit of a single poll. */
const LOOK_TIMEOUT_MS = 30_000;

export interface PolledKind<A> {
  readonly args: Reader<A>;
  readonly intervalMs: (args: A) => number;
  /** `hide`: masks a secret in every message. */
  open(args: A, host: TriggerHost, hide: (secret: string) => void): Promise<View>;
  /** "changed": an event that differs from the last one is new; "again": only if the condition did not hold in between. */
  readonly again: StateWatch["again"];
}

export interface ListedKind<A> extends Omit<PolledKind<A>, "again" | "open"> {
  open(args: A, host: TriggerHost, hide: (secret: string) => void): Promise<Listing>;
}

export function polledKind<K extends keyof BuiltinTriggers>(
  id: K,
  kind: PolledKind<BuiltinTriggers[K]["args"]>,
): BuiltinKind {
  return kindOf(id, { ...kind, watchFrom: (host) => new StateWatch(kind.again, host) });
}

/** A kind that finds any number of things, each of which is an event. */
export function listedKind<K extends keyof BuiltinTriggers>(
  id: K,
  kind: ListedKind<BuiltinTriggers[K]["args"]>,
): BuiltinKind {
  return kindOf(id, { ...kind, watchFrom: (host) => new ThingWatch(host.lastEvent) });
}

/** The common part of both. */
interface AnyKind<A, V extends Place> {
  readonly args: Reader<A>;
  readonly intervalMs: (args: A) => number;
  open(args: A, host: TriggerHost, hide: (secret: string) => void): Promise<V>;
  watchFrom(host: BuiltinHost): Watch<V>;
}

function kindOf<K extends keyof BuiltinTriggers, V extends Place>(
  id: K,
  kind: AnyKind<BuiltinTriggers[K]["args"], V>,
): BuiltinKind {
  type Args = BuiltinTriggers[K]["args"];
  return builtinKind<K>(id, {
    args: kind.args,
    run: (args, host) => poll(kind, args, host),
    check: (args: Args, host) => checkOnce(kind, args, host),
  });
}

async function checkOnce<A, V extends Place>(
  kind: AnyKind<A, V>,
  args: A,
  host: TriggerHost,
): Promise<Json | undefined> {
  const patience = new PollBackoff(host, 0);
  let view: V | undefined;
  try {
    view = await opened(
      kind.open(args, host, (secret) => void patience.mask.add(secret)),
      host.abort,
    );
    const { fresh, note } = await pollOnce(kind.watchFrom(host), view, host);
    if (fresh[0] === undefined && note !== null) host.log("info", note);
    return fresh[0]?.payload;
  } catch (error) {
    throw patience.final(error);
  } finally {
    view?.close?.();
  }
}

async function* poll<A, V extends Place>(
  kind: AnyKind<A, V>,
  args: A,
  host: BuiltinHost,
): AsyncGenerator<Fired, void, void> {
  const intervalMs = kind.intervalMs(args);
  const patience = new PollBackoff(host, intervalMs);
  const hide = (secret: string) => void patience.mask.add(secret);
  const pause = new Pause();
  const watch = kind.watchFrom(host);
  let view: V | undefined;
  let note = "";
  try {
    while (!host.abort.aborted && !watch.isOver) {
      let wait = spread(intervalMs);
      let seen: Seen | undefined;
      try {
        if (view === undefined) {
          view = await opened(kind.open(args, host, hide), host.abort);
          // After it has fired there is no hurry: a file that is being written would fire with every write.
          view.watch?.((name) => watch.mayBeNew(name) && pause.hurry());
        }
        seen = await pollOnce(watch, view, host);
        patience.succeeded();
        if (seen.note !== null && seen.note !== note) host.log("info", seen.note);
        note = seen.note ?? note;
      } catch (error) {
        if (host.abort.aborted) return;
        view?.close?.();
        view = undefined;
        wait = patience.failed(error);
      }
      for (const fired of seen?.fresh ?? []) {
        if (host.abort.aborted) return;
        note = "";
        yield fired;
      }
      if (watch.isOver) return;
      if (!seen?.hasMore) await pause.for(wait, host.abort);
    }
  } finally {
    view?.close?.();
  }
}

/** The time limit begins when it is the turn of this poll. */
async function pollOnce<V extends Place>(watch: Watch<V>, view: V, host: TriggerHost): Promise<Seen> {
  const turn = host.limited(view.place, view.limit, async () => {
    try {
      return await withDeadline(host.abort, LOOK_TIMEOUT_MS, (signal) => watch.poll(view, signal));
    } finally {
      if (!host.abort.aborted) host.polled();
    }
  });
  return await untilAborted(turn, host.abort);
}

/** Closes what opens after the trigger was stopped. */
async function opened<V extends Place>(opening: Promise<V>, abort: AbortSignal): Promise<V> {
  try {
    return await untilAborted(opening, abort);
  } catch (error) {
    if (abort.aborted) {
      opening.then(
        (view) => view.close?.(),
        () => {},
      );
    }
    throw error;
  }
}
