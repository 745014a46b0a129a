/**
 * The faults of the signal storm, dealt from a seeded deck in two lanes at once: listeners, their connections to the
 * database, and the database; writers, their connections, and the gRPC service. Every two seconds all connections that
 * receive wake-ups are cut. Half-way all processes are killed, and continue with NOTIFY off.
 */
import { rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { PgProxy } from "../support/pg-proxy.ts";
import type { CrashablePostgres } from "../support/private-postgres.ts";
import type { FaultInstallation } from "./installation.ts";
import { type SignalPlace, SignalProcess } from "./signal-process.ts";
import {
  type Held,
  heldFile,
  holdFile,
  LEASE_MS,
  LISTENERS,
  type ListenerName,
  whoIsHeld,
} from "./storm-listeners.ts";

export interface SignalStormParts {
  readonly installation: FaultInstallation;
  readonly postgres: CrashablePostgres;
  /** The proxies of the last listener place and the last writer place. */
  readonly ways: { readonly listening: PgProxy; readonly writing: PgProxy };
  readonly listeners: readonly SignalPlace[];
  readonly writers: readonly SignalPlace[];
  /** Processes that send and listen through the server. */
  readonly peers: readonly SignalPlace[];
  readonly server: SignalPlace;
  /** The folder of the files that control the processes. */
  readonly folder: string;
}

const PATIENCE_MS = 25_000;
const DEAF_EVERY_MS = 2_000;
/** The listener with the most work. */
const BUSIEST: ListenerName = "ledger";

export class SignalDeck {
  readonly counts = {
    listenersKilled: 0,
    killedInEffect: 0,
    killedAtCommit: 0,
    pausedInEffect: 0,
    listenersPaused: 0,
    listenersTerminated: 0,
    writersKilled: 0,
    writersPaused: 0,
    peersKilled: 0,
    serversKilled: 0,
    serversTerminated: 0,
    restarts: 0,
    crashed: 0,
    cut: 0,
    deafened: 0,
    listenersDropped: 0,
    writersDropped: 0,
  };
  readonly #parts: SignalStormParts;
  readonly #random: Random;
  readonly #up = new Map<SignalPlace, SignalProcess>();
  /** Places in the second half of the storm. */
  readonly #later = new Set<SignalPlace>();
  #isOver = false;

  constructor(parts: SignalStormParts, seed: number) {
    this.#parts = parts;
    this.#random = randomOf(seed);
  }

  get total(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }

  async startAll(): Promise<void> {
    const { listeners, peers, server, writers } = this.#parts;
    await Promise.all([server, ...listeners].map((place) => this.#start(place)));
    await Promise.all([...writers, ...peers].map((place) => this.#start(place)));
  }

  /** Deals all faults `scale` times. */
  async deal(scale: number): Promise<void> {
    const { listeners, peers, ways, writers } = this.#parts;
    const times = <T>(count: number, fault: T): T[] =>
      Array<T>(Math.max(1, Math.round(count * scale))).fill(fault);
    const deafening = this.#deafen();
    try {
      await Promise.all([
        this.#lane(
          [
            ...times(2, () => this.#killListener()),
            ...times(2, () => this.#killInEffect()),
            ...times(2, () => this.#killAtCommit()),
            ...times(2, () => this.#pauseInEffect()),
            ...times(1, () => this.#pauseListener()),
            ...times(1, () => this.#terminateListener()),
            ...times(1, () => this.#crashDatabase()),
            ...times(3, () => this.#dropListening()),
            ...times(3, () => this.#cut(ways.listening)),
          ],
          () => this.#restart(listeners),
        ),
        this.#lane(
          [
            ...times(4, () => this.#killWriter()),
            ...times(3, () => this.#pauseWriter()),
            ...times(3, () => this.#killPeer()),
            ...times(2, () => this.#killServer()),
            ...times(1, () => this.#terminateServer()),
            ...times(5, () => this.#drop(ways.writing, "writersDropped")),
            ...times(4, () => this.#cut(ways.writing)),
          ],
          () => this.#restart([...writers, ...peers]),
        ),
      ]);
    } finally {
      this.#isOver = true;
      await deafening;
    }
  }

  /** Kills the active listener of this name; another one takes over. */
  async killHolder(name: ListenerName): Promise<void> {
    const place = await this.#holder(name);
    await this.#process(place).kill();
    await this.#start(place);
  }

  async #lane(faults: readonly (() => Promise<void>)[], halfWay: () => Promise<void>): Promise<void> {
    const order = this.#random.shuffled(faults);
    const half = Math.floor(order.length / 2);
    for (const fault of order.slice(0, half)) await fault();
    await halfWay();
    for (const fault of order.slice(half)) await fault();
  }

  async #killListener(): Promise<void> {
    const place = await this.#holder(this.#random.one(NAMES));
    await sleep(this.#random.below(300));
    await this.#process(place).kill();
    this.counts.listenersKilled++;
    await this.#comeBack(place);
  }

  /** Before it could acknowledge: its effect is rolled back, and another listener repeats it. */
  async #killInEffect(): Promise<void> {
    const held = await this.#catchInEffect();
    if (held === null) return;
    await this.#process(held.place).kill();
    this.#release(held);
    this.counts.killedInEffect++;
    await this.#comeBack(held.place);
  }

  /** After the acknowledgement is committed, and before the listener knows. */
  async #killAtCommit(): Promise<void> {
    const { listeners, ways } = this.#parts;
    const place = listeners.at(-1) as SignalPlace;
    await this.#bringTo(place);
    const held = await this.#catchInEffect();
    if (held === null) return;
    const victim = this.#process(place);
    let gone: Promise<void> | undefined;
    ways.listening.set({
      kind: "drop-commit-answer",
      random: () => {
        gone ??= victim.kill();
        return 0;
      },
    });
    this.#release(held);
    await waitFor(() => gone !== undefined, PATIENCE_MS);
    ways.listening.set({ kind: "pass" });
    if (gone === undefined) return;
    await gone;
    this.counts.killedAtCommit++;
    await this.#comeBack(place);
  }

  /** In the middle of its effect, until another listener has done the same. After it resumes, its effect must not count. */
  async #pauseInEffect(): Promise<void> {
    const held = await this.#catchInEffect();
    if (held === null) return;
    const victim = this.#process(held.place);
    victim.pause();
    this.counts.pausedInEffect++;
    const before = await this.#state(held.name);
    const after = () => this.#state(held.name);
    await this.#waitUntil(async () => ![null, before.holder].includes((await after()).holder));
    // Not for long: its transaction holds back all later signals, and its signal may be poison for any listener.
    await this.#waitUntil(async () => (await after()).processed > before.processed, 2 * LEASE_MS);
    this.#release(held);
    victim.resume();
    await sleep(300);
  }

  /** At any point, longer than its lease. */
  async #pauseListener(): Promise<void> {
    const victim = this.#process(await this.#holder(this.#random.one(NAMES)));
    victim.pause();
    this.counts.listenersPaused++;
    await sleep(LEASE_MS * 1.5);
    victim.resume();
    await sleep(300);
  }

  async #terminateListener(): Promise<void> {
    const place = await this.#holder(this.#random.one(NAMES));
    await this.#process(place).terminate();
    this.counts.listenersTerminated++;
    await this.#start(place);
  }

  async #killWriter(): Promise<void> {
    const place = this.#random.one(this.#parts.writers);
    await sleep(this.#random.below(200));
    await this.#process(place).kill();
    this.counts.writersKilled++;
    await this.#comeBack(place);
  }

  /** Its transactions stay open in the meantime, and hold back later signals. */
  async #pauseWriter(): Promise<void> {
    const writer = this.#process(this.#random.one(this.#parts.writers));
    await sleep(this.#random.below(200));
    writer.pause();
    this.counts.writersPaused++;
    await sleep(300 + this.#random.below(900));
    writer.resume();
    await sleep(300);
  }

  async #killPeer(): Promise<void> {
    const place = this.#random.one(this.#parts.peers);
    await sleep(this.#random.below(200));
    await this.#process(place).kill();
    this.counts.peersKilled++;
    await this.#comeBack(place);
  }

  async #killServer(): Promise<void> {
    const { server } = this.#parts;
    await this.#process(server).kill();
    this.counts.serversKilled++;
    await this.#comeBack(server);
  }

  async #terminateServer(): Promise<void> {
    const { server } = this.#parts;
    await this.#process(server).terminate();
    this.counts.serversTerminated++;
    await this.#comeBack(server);
  }

  /** All of them at once; the second half begins for them. */
  async #restart(places: readonly SignalPlace[]): Promise<void> {
    await Promise.all(places.map((place) => this.#process(place).kill()));
    this.counts.restarts++;
    for (const place of places) this.#later.add(place);
    await Promise.all(places.map((place) => this.#start(place)));
  }

  async #crashDatabase(): Promise<void> {
    const { postgres } = this.#parts;
    await postgres.crash(this.#random.chance(0.5) ? "immediate" : "kill");
    await sleep(this.#random.below(500));
    await postgres.resume();
    this.counts.crashed++;
    await sleep(1_000);
  }

  async #dropListening(): Promise<void> {
    const { listeners, ways } = this.#parts;
    const place = listeners.at(-1) as SignalPlace;
    const active = await Promise.all(NAMES.map((name) => this.#state(name)));
    if (!active.some(({ pid }) => pid === this.#process(place).pid)) await this.#bringTo(place);
    await this.#drop(ways.listening, "listenersDropped");
  }

  async #drop(way: PgProxy, count: "listenersDropped" | "writersDropped"): Promise<void> {
    const before = way.faults.dropped;
    way.set({
      kind: "drop-commit-answer",
      probability: 0.4,
      random: () => this.#random.below(1_000) / 1_000,
    });
    await waitFor(() => way.faults.dropped >= before + 3, 1_500);
    way.set({ kind: "pass" });
    this.counts[count] += way.faults.dropped - before;
    await sleep(200);
  }

  async #cut(way: PgProxy): Promise<void> {
    way.set({ kind: "cut" });
    this.counts.cut++;
    await sleep(50 + this.#random.below(500));
    way.set({ kind: "pass" });
    await sleep(300);
  }

  /** Repeatedly cuts the connections that receive wake-ups. */
  async #deafen(): Promise<void> {
    const sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    while (!this.#isOver) {
      this.counts.deafened += (await this.#parts.installation.sql(sql)).length;
      await sleep(DEAF_EVERY_MS);
    }
  }

  /** The place whose process is active under this name. */
  async #holder(name: ListenerName): Promise<SignalPlace> {
    const { listeners } = this.#parts;
    let found: SignalPlace | undefined;
    await this.#waitUntil(async () => {
      const { pid } = await this.#state(name);
      found = listeners.find((place) => this.#up.get(place)?.pid === pid);
      return found !== undefined;
    });
    return found ?? (listeners[0] as SignalPlace);
  }

  /** Kills the others, so that this place is active under all names. */
  async #bringTo(place: SignalPlace): Promise<void> {
    const others = this.#parts.listeners.filter((each) => each !== place);
    await Promise.all(others.map((each) => this.#process(each).kill()));
    this.counts.listenersKilled += others.length;
    await this.#waitUntil(async () => (await this.#state(BUSIEST)).pid === this.#process(place).pid);
    await Promise.all(others.map((each) => this.#start(each)));
  }

  /** A process suspended in the middle of an effect; null: none reached one. */
  async #catchInEffect(): Promise<(Held & { readonly place: SignalPlace }) | null> {
    const { folder, listeners } = this.#parts;
    writeFileSync(holdFile(folder), "");
    await waitFor(() => whoIsHeld(folder) !== undefined, PATIENCE_MS);
    rmSync(holdFile(folder), { force: true });
    const held = whoIsHeld(folder);
    if (held === undefined) return null;
    const place = listeners.find((each) => this.#process(each).pid === held.pid) as SignalPlace;
    return { ...held, place };
  }

  #release(held: Held): void {
    rmSync(heldFile(this.#parts.folder, held), { force: true });
  }

  async #state(name: ListenerName): Promise<{ holder: string | null; pid: number; processed: number }> {
    const [row] = await this.#parts.installation.sql<{
      holder: string | null;
      host: string;
      processed: number;
    }>(
      `SELECT CASE WHEN lease_until > now() THEN holder END AS holder, host, processed
       FROM signal_listener WHERE name = $1`,
      [name],
    );
    const { holder = null, host = "", processed = 0 } = row ?? {};
    return { holder, processed, pid: holder === null ? 0 : Number(host.split(":").at(-1)) };
  }

  #process(place: SignalPlace): SignalProcess {
    return this.#up.get(place) as SignalProcess;
  }

  /** Some time after it was killed: others may or may not have taken over. */
  async #comeBack(place: SignalPlace): Promise<void> {
    await sleep(this.#random.below(LEASE_MS));
    await this.#start(place);
  }

  async #start(place: SignalPlace): Promise<void> {
    const make = () => new SignalProcess(place, this.#later.has(place));
    this.#up.set(place, await this.#parts.installation.comeUp(make));
  }

  async #waitUntil(holds: () => Promise<boolean>, withinMs = PATIENCE_MS): Promise<void> {
    for (const deadline = performance.now() + withinMs; performance.now() < deadline; await sleep(20))
      if (await holds()) return;
  }
}

/** The listeners whose processes are subject to faults. */
const NAMES = (Object.keys(LISTENERS) as ListenerName[]).filter(
  (name) => name !== "remote" && name !== "newcomer",
);

async function waitFor(holds: () => boolean, withinMs: number): Promise<void> {
  for (const deadline = performance.now() + withinMs; !holds() && performance.now() < deadline; )
    await sleep(10);
}
