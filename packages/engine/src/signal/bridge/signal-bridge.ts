/**
 * Lets a signal service of another make drive scheduling. Rules, waits and schedules read the log of the database; the
 * bridge copies every signal of the service into it, and what tasks have sent (`ctx.send`) out of it. One process holds
 * the bridge at a time, by a lease; all others wait to take over.
 *
 * In: the signals and the place behind them are stored in one transaction, which names the holder. Dies before: they are
 * read again. Dies after, or two at once: the place has moved, or the holder is another.
 *
 * Out: a task's signal is sent under the bridge's name with its version as number, so that the service stores it once,
 * however often it is sent. What was sent comes back, and is left out by its version there. For this, sending and
 * reading take turns: whatever was sent before a batch was read has its version stored before the batch is. A new
 * holder sends first what its predecessor may have sent without storing the version.
 */
import { randomUUID } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import type { WakeUps } from "../../job/wake-up.ts";
import { RESERVED_NAMESPACES } from "../../model/signal/signal-names.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import type { Service } from "../../service/service.ts";
import type { Database } from "../../store/database/database.ts";
import {
  claimBridge,
  hasSignal,
  openBridge,
  releaseBridge,
  sentByTasks,
  storeImported,
  storePublished,
} from "../../store/signal/signal-bridge.ts";
import type { LogPosition } from "../../store/signal/signals-position.ts";
import type { Signal } from "../signal.ts";
import type { SignalPlace, SignalService, Subscription } from "../signal-service.ts";

export interface SignalBridgeOptions {
  readonly database: Database;
  readonly signals: SignalService;
  /** Its name in the database: as it is configured. */
  readonly service: string;
  readonly wakeUps: Pick<WakeUps, "onLocal" | "listen" | "send">;
  readonly logger: Logger;
  readonly leaseMs?: number;
}

/** Signals by which the bridge finds out whether the service is the log itself. */
const PROBES = "tradewind.bridge";
const PAGE = 500;
const LEASE_MS = 6_000;
const AWAY_MAX_MS = 5_000;
const LATE_MS = 30_000;

type Place = Required<SignalPlace>;

export class SignalBridge implements Service {
  readonly name = "signal bridge";
  readonly #options: SignalBridgeOptions;
  readonly #hold: { readonly service: string; readonly holder: string };
  readonly #outage: Outage;
  readonly #stopping = new AbortController();
  #publishedAt = performance.now();
  #isAwaited = false;
  #wake: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #unlisten: (() => Promise<void>)[] = [];

  constructor(options: SignalBridgeOptions) {
    this.#options = options;
    this.#hold = { service: options.service, holder: randomUUID() };
    this.#outage = new Outage(options.logger, "copy signals from and to the signal service");
  }

  async start(): Promise<void> {
    const { wakeUps } = this.#options;
    const onTopic = (topic: string) => {
      if (topic === "signals" || topic === "") this.#call();
    };
    const off = wakeUps.onLocal(onTopic);
    const listening = await wakeUps.listen(onTopic);
    this.#unlisten = [async () => off(), () => listening.close()];
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#call();
    for (const off of this.#unlisten.splice(0)) await off();
    await this.#running;
    this.#running = null;
    await releaseBridge(this.#options.database, this.#hold).catch(() => {});
  }

  async #run(): Promise<void> {
    let awayMs = 100;
    let isSame: boolean | null = null;
    while (!this.#stopping.signal.aborted) {
      try {
        isSame ??= await this.#isSameLog();
        if (isSame) {
          this.#options.logger.info("the signal service stores into this database: nothing to copy");
          return;
        }
        const isHeld = await this.#carry(() => {
          awayMs = 100;
          this.#outage.passed();
        });
        if (!isHeld) await this.#rest(this.#leaseMs / 3);
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#outage.failed(error);
        await this.#rest(awayMs);
        awayMs = Math.min(2 * awayMs, AWAY_MAX_MS);
      }
    }
  }

  /** A service that stores into this very log drives scheduling as it is; copied, its signals would come back without end. */
  async #isSameLog(): Promise<boolean> {
    const { database, signals } = this.#options;
    const key = randomUUID();
    await signals.send([{ namespace: PROBES, key }]);
    return hasSignal(database, PROBES, key);
  }

  /** As long as this process holds the bridge. false: another does. */
  async #carry(onTurn: () => void): Promise<boolean> {
    const { database, service, signals } = this.#options;
    await openBridge(
      database,
      service,
      async () => placeOf(await signals.position("now")) as unknown as Json,
    );
    const held = await claimBridge(database, this.#hold, this.#leaseMs);
    if (!held) return false;
    let place = held.place as unknown as Place;
    let published = held.published;
    const since = place.since === null ? null : new Date(place.since);
    const subscription = signals.subscribe({ namespace: "*" }, { ...place, since });
    try {
      while (!this.#stopping.signal.aborted) {
        this.#isAwaited = false;
        published = await this.#publish(held.client, published);
        const { position, signals: found } = await this.#next(subscription);
        place = { ...place, position };
        if (!(await this.#import(found, place))) return false;
        if (!(await claimBridge(database, this.#hold, this.#leaseMs))) return false;
        onTurn();
      }
      return true;
    } finally {
      subscription.close();
    }
  }

  /** Until the service has something, a task has sent something, or the lease is to be prolonged. */
  async #next(subscription: Subscription) {
    const abort = new AbortController();
    this.#wake = () => abort.abort();
    // Called meanwhile: what has arrived is read all the same, or a busy log would keep the service from being heard.
    const waitMs = this.#isAwaited ? 0 : this.#leaseMs / 3;
    try {
      return await subscription.next({ limit: PAGE, waitMs, abort: abort.signal });
    } finally {
      this.#wake = null;
    }
  }

  async #import(found: readonly Signal[], place: Place): Promise<boolean> {
    const { database, wakeUps } = this.#options;
    // What the engine itself tells cannot be told by others.
    const drafts = found
      .filter(({ namespace }) => namespace !== PROBES && !RESERVED_NAMESPACES.has(namespace))
      .map(({ key, namespace, sender, value, version }) => {
        return { namespace, key, value, version, sender: foreignSender(sender) };
      });
    const isHeld = await storeImported(database, this.#hold, { signals: drafts, place: placeJson(place) });
    if (isHeld && drafts.length > 0) wakeUps.send("signals");
    return isHeld;
  }

  async #publish(client: string, from: LogPosition): Promise<LogPosition> {
    const { database, signals } = this.#options;
    for (let after = from; ; ) {
      const query = { after, except: [...RESERVED_NAMESPACES], limit: PAGE };
      const { position, rows } = await sentByTasks(database, query);
      if (rows.length === 0) {
        // A place that has only moved on is not worth a transaction, but retention waits for it.
        if (performance.now() - this.#publishedAt < LATE_MS) return position;
        await this.#published({ sent: [], position });
        return position;
      }
      const sent = await signals.send(
        rows.map(({ id, key, namespace, sender, value }) => {
          return { namespace, key, value, sender: `tradewind:${sender}`, client, sequence: id };
        }),
      );
      await this.#published({ sent, position });
      after = position;
    }
  }

  /** Where another process holds the bridge, nothing is stored; the import that follows finds that out, too. */
  async #published(change: Parameters<typeof storePublished>[2]): Promise<void> {
    await storePublished(this.#options.database, this.#hold, change);
    this.#publishedAt = performance.now();
  }

  get #leaseMs(): number {
    return this.#options.leaseMs ?? LEASE_MS;
  }

  #call(): void {
    this.#isAwaited = true;
    this.#wake?.();
  }

  async #rest(ms: number): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#stopping.signal.addEventListener(
        "abort",
        () => {
          clearTimeout(timer);
          resolve();
        },
        { once: true },
      );
    });
  }
}

/** Senders of the engine's own cannot be told by others: conditions on the signals of a run rely on them. */
function foreignSender(sender: string): string {
  return /^(?:task|scheduler):/.test(sender) ? `service:${sender}` : sender;
}

function placeOf({ afterVersion = null, position, since = null }: SignalPlace): Json {
  return placeJson({ position, afterVersion, since });
}

function placeJson({ afterVersion, position, since }: Place): Json {
  return { position, afterVersion, since: since === null ? null : new Date(since).toISOString() };
}
