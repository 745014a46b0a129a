/**
 * The pods of one namespace, kept current by a list and a watch that continues from it. After a lost connection the watch
 * continues where it was; if the API server no longer has that place (410 Gone), everything is listed again, and pods that
 * are missing are gone. Events may be repeated, and may show a pod as it was before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import type { PodApi, PodEventType } from "./pod-api.ts";
import { PodApiError } from "./pod-api-error.ts";

export interface PodWatchOptions {
  readonly api: Pick<PodApi, "list" | "watch">;
  readonly namespace: string;
  /** A label selector. */
  readonly labels: string;
  readonly onPod: (pod: V1Pod) => void;
  /** As it was last seen. Also called if its name belongs to another pod by now, or its labels have changed. */
  readonly onGone: (pod: V1Pod) => void;
  readonly logger: Logger;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;
/** A watch that ends sooner, without any event, has failed. */
const SOON_MS = 1_000;

export class PodWatch {
  readonly #options: PodWatchOptions;
  readonly #outage: Outage;
  readonly #stop = new AbortController();
  readonly #listed = Promise.withResolvers<void>();
  /** By name. */
  readonly #pods = new Map<string, V1Pod>();
  #version: string | null = null;
  #failures = 0;
  #work: Promise<void> = Promise.resolve();

  constructor(options: PodWatchOptions) {
    this.#options = options;
    this.#outage = new Outage(options.logger, `watch the pods of namespace ${options.namespace}`);
  }

  /** Resolves when the pods are known for the first time, or when the watch is stopped. */
  get listed(): Promise<void> {
    return this.#listed.promise;
  }

  /** What fails now; null: nothing. */
  get problem(): string | null {
    return this.#outage.problem;
  }

  start(): void {
    this.#work = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#listed.resolve();
    await this.#work;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#version === null) await this.#list();
        await this.#watch();
      } catch (error) {
        this.#failures++;
        if (error instanceof PodApiError && error.isGone) {
          this.#options.logger.debug("the watch of pods is too old: listing them again");
          this.#version = null;
          // The list is the remedy. If that does not help, there is a pause.
          if (this.#failures === 1) continue;
        }
        if (!signal.aborted) this.#outage.failed(error);
      }
      if (this.#failures === 0) continue;
      const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(this.#failures - 1, 10));
      await sleep(wait * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
    }
  }

  async #watch(): Promise<void> {
    const { api, labels, namespace } = this.#options;
    const { signal } = this.#stop;
    const began = performance.now();
    let isSilent = true;
    await api.watch({
      ...{ namespace, labels, signal, version: this.#version ?? "" },
      onEvent: (type, pod) => {
        isSilent = false;
        this.#failures = 0;
        this.#outage.passed();
        this.#version = pod.metadata?.resourceVersion ?? this.#version;
        this.#apply(type, pod);
      },
    });
    if (!isSilent || performance.now() - began > SOON_MS) this.#failures = 0;
    else this.#failures++;
  }

  async #list(): Promise<void> {
    const { api, labels, namespace } = this.#options;
    const found: V1Pod[] = [];
    let version = "";
    for (let next: string | undefined; ; ) {
      const page = await api.list(namespace, labels, next);
      found.push(...page.pods);
      version = page.version;
      next = page.next;
      if (next === undefined || this.#stop.signal.aborted) break;
    }
    const names = new Set(found.map((pod) => pod.metadata?.name));
    for (const [name, pod] of this.#pods) if (!names.has(name)) this.#apply("DELETED", pod);
    for (const pod of found) this.#apply("MODIFIED", pod);
    this.#version = version;
    this.#outage.passed();
    this.#listed.resolve();
  }

  #apply(type: PodEventType, pod: V1Pod): void {
    if (type === "BOOKMARK") return;
    const { name = "", uid } = pod.metadata ?? {};
    const known = this.#pods.get(name);
    if (type === "DELETED") {
      // An old event, about a pod whose name belongs to another one.
      if (known !== undefined && known.metadata?.uid !== uid) return;
      this.#pods.delete(name);
      this.#call(this.#options.onGone, pod);
      return;
    }
    if (known !== undefined && known.metadata?.uid !== uid) this.#call(this.#options.onGone, known);
    // Most of its size, and of no use here.
    if (pod.metadata) delete pod.metadata.managedFields;
    this.#pods.set(name, pod);
    this.#call(this.#options.onPod, pod);
  }

  /** An error in a handler must not end the watch. */
  #call(handler: (pod: V1Pod) => void, pod: V1Pod): void {
    try {
      handler(pod);
    } catch (error) {
      this.#options.logger.error("cannot handle a pod", { pod: pod.metadata?.name, error: messageOf(error) });
    }
  }
}
