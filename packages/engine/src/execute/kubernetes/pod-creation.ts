/**
 * Creates pods: several at once, the most important first, at a limited rate. A refusal that may pass (an overloaded or absent
 * API server, a used-up quota) slows down the creation of all pods until one succeeds again; nothing is given up. Another
 * pod is tried meanwhile, so a pod that exceeds the quota does not block smaller ones.
 *
 * If the process dies, its queue is lost: other schedulers find the assignments without pods.
 */
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import { PodApiError } from "./pod-api-error.ts";
import type { TaskPod } from "./task-pod.ts";

export interface NewPod extends TaskPod {
  readonly id: string;
  /** Larger numbers first. */
  readonly priority: number;
}

export interface PodCreationOptions {
  /** Rejects with PodApiError. */
  readonly create: (pod: NewPod) => Promise<void>;
  /** The API server will never accept it. */
  readonly onRefused: (pod: NewPod, error: PodApiError) => void;
  /** Pods per second. */
  readonly rate: number;
  readonly logger: Logger;
  /** Calls at once. Default: 16. */
  readonly concurrency?: number;
}

interface Waiting {
  readonly pod: NewPod;
  tries: number;
  notBefore: number;
}

const CONCURRENCY = 16;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

export class PodCreation {
  readonly #options: PodCreationOptions;
  readonly #outage: Outage;
  readonly #waiting = new Map<string, Waiting>();
  readonly #creating = new Map<string, Promise<void>>();
  #failures = 0;
  #pausedUntil = 0;
  /** When the next call may begin, by the rate. */
  #nextAt = 0;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(options: PodCreationOptions) {
    this.#options = options;
    this.#outage = new Outage(options.logger, "create pods");
  }

  /** What fails now; null: nothing. */
  get problem(): string | null {
    return this.#outage.problem;
  }

  has(id: string): boolean {
    return this.#waiting.has(id) || this.#creating.has(id);
  }

  add(pods: readonly NewPod[]): void {
    for (const pod of pods) if (!this.has(pod.id)) this.#waiting.set(pod.id, { pod, tries: 0, notBefore: 0 });
    this.#start();
  }

  /** Resolves when no call creates the pod any more: false if none has tried to. */
  async remove(id: string): Promise<boolean> {
    await this.#creating.get(id);
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting === undefined || waiting.tries > 0;
  }

  /** There may be room in the quota again. */
  retry(): void {
    if (this.#failures === 0) return;
    this.#pausedUntil = 0;
    for (const each of this.#waiting.values()) each.notBefore = 0;
    this.#start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting.clear();
    await Promise.all(this.#creating.values());
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const { concurrency = CONCURRENCY, rate } = this.#options;
    while (!this.#isStopped && this.#waiting.size > 0) {
      const now = performance.now();
      // One call at a time finds out whether the trouble has passed.
      if (this.#creating.size >= (this.#failures > 0 ? 1 : concurrency)) return;
      const next = this.#next(now);
      const at = Math.max(this.#pausedUntil, this.#nextAt, next.notBefore);
      if (at > now) {
        this.#timer = setTimeout(() => this.#start(), Math.ceil(at - now));
        return;
      }
      // After a quiet time, a few may begin at once.
      this.#nextAt = Math.max(this.#nextAt, now - (1_000 / rate) * concurrency) + 1_000 / rate;
      const { id } = next.pod;
      this.#waiting.delete(id);
      const work = this.#create(next).finally(() => {
        this.#creating.delete(id);
        this.#start();
      });
      this.#creating.set(id, work);
    }
  }

  /** The most important one that may be tried; if there is none, the one that may be tried first. */
  #next(now: number): Waiting {
    let best: Waiting | undefined;
    for (const each of this.#waiting.values()) {
      if (best === undefined) best = each;
      else if (each.notBefore > now || best.notBefore > now)
        best = each.notBefore < best.notBefore ? each : best;
      else if (each.pod.priority > best.pod.priority) best = each;
    }
    return best as Waiting;
  }

  async #create(item: Waiting): Promise<void> {
    const { create, onRefused } = this.#options;
    try {
      await create(item.pod);
      this.#passed(item);
    } catch (cause) {
      const error = cause instanceof PodApiError ? cause : new PodApiError(messageOf(cause), { status: 400 });
      if (error.isExisting) this.#passed(item);
      else if (error.isTransient) this.#failed(item, error);
      else onRefused(item.pod, error);
    }
  }

  #passed({ tries }: Waiting): void {
    this.#failures = 0;
    this.#pausedUntil = 0;
    if (tries > 0) this.#outage.passed();
  }

  #failed(item: Waiting, error: PodApiError): void {
    this.#outage.failed(error);
    const now = performance.now();
    const pause = error.retryAfterMs ?? backoff(this.#failures++);
    if (error.retryAfterMs !== undefined) this.#failures++;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pause);
    if (this.#isStopped) return;
    item.notBefore = now + Math.max(pause, backoff(item.tries++));
    this.#waiting.set(item.pod.id, item);
  }
}

/** With jitter, so that several schedulers do not come back at once. */
function backoff(failures: number): number {
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
  return most * (0.5 + Math.random() / 2);
}
