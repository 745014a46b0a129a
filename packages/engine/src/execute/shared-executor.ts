/**
 * One executor for several jobs of a process, e.g. a scheduler and a backfill: its slots are those of the machine. Each job
 * has a view, which looks like an executor of its own: it receives the reports of its own assignments only.
 *
 * The executor starts with the first view, and is stopped by its process: a view that stops ends its own assignments only. It
 * drains when all views drain. Its attempts are bound to the shortest lease of its jobs: when a job loses its lease, the
 * attempts of the others are stopped with its own, and started again without using up a try.
 */
import type {
  AdoptedAttempt,
  Assignment,
  CancelTerms,
  Executor,
  ExecutorEvent,
  LeaseTerm,
  RemoteAttempts,
} from "./contract.ts";

const STOPPING = "the executor is stopping";
/** From the kill of the last process to its report. */
const LAST_REPORTS_MS = 3_000;

export class SharedExecutor {
  readonly executor: Executor;
  readonly #views = new Set<ExecutorView>();
  /** The view of each assignment whose end is not reported. */
  readonly #owners = new Map<string, ExecutorView>();
  readonly #terms = new Map<ExecutorView, LeaseTerm>();
  #starting: Promise<void> | null = null;

  constructor(executor: Executor) {
    this.executor = executor;
  }

  view(): Executor {
    return new ExecutorView(this);
  }

  open(view: ExecutorView): Promise<void> {
    this.#views.add(view);
    this.#starting ??= this.executor.start((event) => this.#route(event));
    return this.#starting;
  }

  close(view: ExecutorView): void {
    this.#views.delete(view);
    this.#terms.delete(view);
    this.#extendLease();
  }

  claim(view: ExecutorView, ids: readonly string[]): void {
    for (const id of ids) this.#owners.set(id, view);
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) this.#owners.delete(id);
  }

  drainIfAll(): void {
    if ([...this.#views].every((view) => view.isDraining)) this.executor.drain?.();
  }

  extendLease(view: ExecutorView, term: LeaseTerm): void {
    this.#terms.set(view, term);
    this.#extendLease();
  }

  #extendLease(): void {
    const terms = [...this.#terms.values()];
    const [first, ...others] = terms;
    if (first === undefined) return;
    const shortest = others.reduce((a, b) => (b.trustedUntil < a.trustedUntil ? b : a), first);
    this.executor.extendLease?.(shortest);
  }

  #route(event: ExecutorEvent): void {
    if (event.type === "capacity") {
      for (const view of this.#views) view.receive(event);
      return;
    }
    const id = idOf(event);
    const owner = this.#owners.get(id);
    owner?.receive(event);
    if (event.type === "started") return;
    this.#owners.delete(id);
    // The slot is free for every view.
    for (const view of this.#views) if (view !== owner) view.receive({ type: "capacity" });
  }
}

class ExecutorView implements Executor {
  readonly #shared: SharedExecutor;
  /** Assignments whose end is not reported; true: of an attempt. */
  readonly #open = new Map<string, boolean>();
  readonly remote?: RemoteAttempts;
  isDraining = false;
  #report: (event: ExecutorEvent) => void = () => {};
  #onEmpty: (() => void) | null = null;

  constructor(shared: SharedExecutor) {
    this.#shared = shared;
    const { remote } = shared.executor;
    if (remote) this.remote = this.#remoteOf(remote);
  }

  get name(): string {
    return this.#shared.executor.name;
  }

  get type(): string {
    return this.#shared.executor.type;
  }

  problem(): string | null {
    return this.#shared.executor.problem?.() ?? null;
  }

  get streamingSlots(): number {
    return this.#shared.executor.streamingSlots ?? 0;
  }

  start(report: (event: ExecutorEvent) => void): Promise<void> {
    this.#report = report;
    return this.#shared.open(this);
  }

  submit(assignments: readonly Assignment[]): void {
    const wanted = this.isDraining ? assignments.filter(({ kind }) => kind !== "attempt") : assignments;
    for (const { id, kind } of wanted) this.#open.set(id, kind === "attempt");
    this.#shared.claim(
      this,
      wanted.map(({ id }) => id),
    );
    this.#shared.executor.submit(wanted);
    // Not within the call: the caller does not expect a report during it.
    const late = assignments.filter((assignment) => !wanted.includes(assignment));
    if (late.length > 0) queueMicrotask(() => this.#refuse(late));
  }

  cancel(attempt: string, reason: string, how?: CancelTerms): void {
    this.#shared.executor.cancel(attempt, reason, how);
  }

  extendLease(term: LeaseTerm): void {
    this.#shared.extendLease(this, term);
  }

  freeSlots(): number {
    return this.isDraining ? 0 : this.#shared.executor.freeSlots();
  }

  slots(): { readonly slots: number | null; readonly free: number } {
    const { free, slots } = this.#shared.executor.slots();
    return { slots, free: this.isDraining ? 0 : free };
  }

  drain(): void {
    this.isDraining = true;
    this.#shared.drainIfAll();
  }

  /** Local attempts are stopped at once. Callbacks and reactions may end within the grace period. */
  async stop(graceMs: number): Promise<void> {
    this.drain();
    if (this.remote === undefined) {
      for (const [id, isAttempt] of this.#open) if (isAttempt) this.#stopOne(id, graceMs);
      await this.#empty(graceMs);
      for (const id of this.#open.keys()) this.#stopOne(id, 0);
      await this.#empty(LAST_REPORTS_MS);
    }
    this.#shared.close(this);
  }

  #empty(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  receive(event: ExecutorEvent): void {
    if (event.type !== "started" && event.type !== "capacity") this.#open.delete(idOf(event));
    this.#report(event);
    if (this.#open.size === 0) this.#onEmpty?.();
  }

  #refuse(late: readonly Assignment[]): void {
    const outcome = { kind: "lost", reason: STOPPING } as const;
    for (const { id: attempt } of late) this.#report({ type: "ended", attempt, at: Date.now(), outcome });
  }

  #stopOne(id: string, graceMs: number): void {
    this.#shared.executor.cancel(id, STOPPING, { isLost: true, graceMs });
  }

  #remoteOf(remote: RemoteAttempts): RemoteAttempts {
    const ids = (attempts: readonly AdoptedAttempt[]) => attempts.map(({ id }) => id);
    const drop = (attempts: readonly string[]) => {
      for (const id of attempts) this.#open.delete(id);
      this.#shared.forget(attempts);
    };
    return {
      adopt: (attempts) => {
        this.#shared.claim(this, ids(attempts));
        remote.adopt(attempts);
      },
      abandon: (attempts) => {
        drop(attempts);
        remote.abandon(attempts);
      },
      forget: (attempts) => {
        drop(attempts);
        remote.forget(attempts);
      },
      isStored: (attempt) => remote.isStored(attempt),
    };
  }
}

function idOf(event: Exclude<ExecutorEvent, { type: "capacity" }>): string {
  if (event.type === "callbackEnded") return event.callbackId;
  return event.type === "reactionEnded" ? event.reactionId : event.attempt;
}
