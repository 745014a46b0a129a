/**
 * Connects scheduling to another implementation of the signal service. Rules, waits and schedules read the log of the
 * database; the bridge copies every signal of the service into the log, and every signal that tasks have sent
 * (`ctx.send`) out of it. One process holds the bridge at a time, by a lease; the others wait to take over.
 *
 * In: the signals and the position after them are stored in one transaction that is fenced by the holder. If the process
 * dies before the commit, they are read again. If it dies after, or two processes copy at once, the position has moved
 * or the holder is another one.
 *
 * Out: a task's signal is sent under the bridge's name with its version as sequence, so the service stores it once. Sent
 * signals come back, and are skipped by their version in the service. To make this safe, sending and reading alternate:
 * the versions of all signals sent before a batch was read are stored before the batch is. A new holder first resends the
 * signals that its predecessor may have sent without storing the version.
 */
import { randomUUID } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import { RESERVED_NAMESPACES } from "@tradewind/sdk/signal-names";
import type { WakeUps } from "../../job/wake-up.ts";
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
  /** Its name in the database: as configured. */
  readonly service: string;
  readonly wakeUps: Pick<WakeUps, "onLocal" | "listen" | "send">;
  readonly logger: Logger;
  readonly leaseMs?: number;
}

/** Signals that the bridge sends to detect whether the service is the log itself. */
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

  /** A service on the same log needs no copy; copied signals would come back endlessly. */
  async #isSameLog(): Promise<boolean> {
    const { database, signals } = this.#options;
    const key = randomUUID();
    await signals.send([{ namespace: PROBES, key }]);
    return hasSignal(database, PROBES, key);
  }

  /** Runs while this process holds the bridge. False if another process holds it. */
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

  /** Waits until the service has a signal, a task has sent one, or the lease must be renewed. */
  async #next(subscription: Subscription) {
    const abort = new AbortController();
    this.#wake = () => abort.abort();
    // Woken meanwhile: read what has arrived anyway, or a busy log would starve the service.
    const waitMs = this.#isAwaited ? 0 : this.#leaseMs / 3;
    try {
      return await subscription.next({ limit: PAGE, waitMs, abort: abort.signal });
    } finally {
      this.#wake = null;
    }
  }

  async #import(found: readonly Signal[], place: Place): Promise<boolean> {
    const { database, wakeUps } = this.#options;
    // Only the engine may send signals in its own namespaces.
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
        // A moved position alone is not worth a transaction each time, but retention depends on it.
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

  /** If another process holds the bridge, nothing is stored; the import that follows fails for the same reason. */
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

/** Other services must not use the engine's own sender names: conditions on the signals of a run rely on them. */
function foreignSender(sender: string): string {
  return /^(?:task|scheduler):/.test(sender) ? `service:${sender}` : sender;
}

function placeOf({ afterVersion = null, position, since = null }: SignalPlace): Json {
  return placeJson({ position, afterVersion, since });
}

function placeJson({ afterVersion, position, since }: Place): Json {
  return { position, afterVersion, since: since === null ? null : new Date(since).toISOString() };
}
