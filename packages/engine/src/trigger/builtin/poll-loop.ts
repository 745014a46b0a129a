/**
 * The life of a trigger that asks the outside world again and again: the first time at once, then every interval,
 * with the patience of `patience.ts` when it cannot ask. What it asks with is opened anew after every failure, so
 * that a changed connection (a new password, another host) is picked up without a restart.
 *
 * It fires when what it waits for is so, and fires again when that has come about anew. A wait takes the first event
 * and stops the trigger; a schedule listens on.
 */
import { isDeepStrictEqual } from "node:util";
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerHost } from "@tradewind/sdk/program";
import { Pause, untilAborted, withDeadline } from "./abort.ts";
import type { Reader } from "./argument-readers.ts";
import { type BuiltinHost, type BuiltinKind, builtinKind, type Fired } from "./builtin-kind.ts";
import { Patience, spread } from "./patience.ts";

/** No single look may take longer. */
const LOOK_TIMEOUT_MS = 30_000;

/** What was seen: the event, or in a few words why there is none yet. */
export type Sight = { readonly event: Json } | { readonly event?: undefined; readonly note: string };

export interface View {
  /** Looks at the same place are limited together, across all triggers of the process. */
  readonly place: string;
  readonly limit: number;
  /** One look. Ends what it has under way when the signal fires. */
  look(signal: AbortSignal): Promise<Sight>;
  /** Calls `hurry` when it is worth looking before the interval is over. */
  watch?(hurry: () => void): void;
  close?(): void;
}

export interface PolledKind<A> {
  readonly args: Reader<A>;
  readonly intervalMs: (args: A) => number;
  /** `hide`: keeps a secret out of every message. */
  open(args: A, host: TriggerHost, hide: (secret: string) => void): Promise<View>;
  /** "changed": an event that differs from the last one is a new one; "anew": only when it was not so in between. */
  readonly again: "changed" | "anew" | "never";
}

export function polledKind<K extends keyof BuiltinTriggers>(
  id: K,
  kind: PolledKind<BuiltinTriggers[K]["args"]>,
): BuiltinKind {
  type Args = BuiltinTriggers[K]["args"];
  return builtinKind<K>(id, {
    args: kind.args,
    run: (args, host) => poll(kind, args, host),
    check: (args: Args, host) => checkOnce(kind, args, host),
  });
}

async function checkOnce<A>(kind: PolledKind<A>, args: A, host: TriggerHost): Promise<Json | undefined> {
  const patience = new Patience(host, 0);
  let view: View | undefined;
  try {
    view = await opened(
      kind.open(args, host, (secret) => void patience.mask.add(secret)),
      host.abort,
    );
    const sight = await lookOnce(view, host);
    if (sight.event === undefined) host.log("info", sight.note);
    return sight.event;
  } catch (error) {
    throw patience.final(error);
  } finally {
    view?.close?.();
  }
}

async function* poll<A>(kind: PolledKind<A>, args: A, host: BuiltinHost): AsyncGenerator<Fired, void, void> {
  const intervalMs = kind.intervalMs(args);
  const patience = new Patience(host, intervalMs);
  const hide = (secret: string) => void patience.mask.add(secret);
  const pause = new Pause();
  let view: View | undefined;
  let last = host.lastEvent;
  if (kind.again === "never" && last !== undefined) return;
  let note = "";
  try {
    while (!host.abort.aborted) {
      let wait = spread(intervalMs);
      let event: Json | undefined;
      try {
        if (view === undefined) {
          view = await opened(kind.open(args, host, hide), host.abort);
          // Once it has fired there is no hurry: a file that is being written would fire with every piece.
          view.watch?.(() => last === undefined && pause.hurry());
        }
        const sight = await lookOnce(view, host);
        patience.succeeded();
        if (sight.event !== undefined) event = sight.event;
        else {
          last = undefined;
          if (sight.note !== note) host.log("info", sight.note);
          note = sight.note;
        }
      } catch (error) {
        if (host.abort.aborted) return;
        view?.close?.();
        view = undefined;
        wait = patience.failed(error);
      }
      if (event !== undefined && isNew(kind.again, last, event)) {
        last = event;
        note = "";
        yield { payload: event, key: null };
        if (kind.again === "never") return;
      }
      await pause.for(wait, host.abort);
    }
  } finally {
    view?.close?.();
  }
}

function isNew(again: PolledKind<never>["again"], last: Json | undefined, event: Json): boolean {
  return last === undefined || (again === "changed" && !isDeepStrictEqual(last, event));
}

/** The deadline begins when it is this look's turn. */
async function lookOnce(view: View, host: TriggerHost): Promise<Sight> {
  const turn = host.limited(view.place, view.limit, async () => {
    try {
      return await withDeadline(host.abort, LOOK_TIMEOUT_MS, (signal) => view.look(signal));
    } finally {
      if (!host.abort.aborted) host.polled();
    }
  });
  return await untilAborted(turn, host.abort);
}

/** What opens after the trigger was stopped has nobody left to close it. */
async function opened(opening: Promise<View>, abort: AbortSignal): Promise<View> {
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
