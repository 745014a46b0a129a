import { setTimeout as sleep } from "node:timers/promises";
import { CoreV1Api, type KubeConfig, type V1Pod, Watch } from "@kubernetes/client-node";

/** Handlers return at once and do not throw: the client discards their errors. */
export interface PodHandlers {
  /** A pod was added or has changed, or the watch was started again. */
  onPod(pod: V1Pod): void;
  onGone(pod: V1Pod): void;
}

export interface PodWatch {
  /** The pods as far as the watch has read. */
  pods(): readonly V1Pod[];
  stop(): void;
}

const RECONNECT_MS = 50;

/** Watches the pods of a namespace; it survives restarts of the API server. */
export async function watchPods(
  config: KubeConfig,
  handlers: PodHandlers,
  namespace: string,
): Promise<PodWatch> {
  const core = config.makeApiClient(CoreV1Api);
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const known = new Map<string, V1Pod>();
  const stopping = new AbortController();
  const seen = (pod: V1Pod) => {
    known.set(pod.metadata?.uid ?? "", pod);
    handlers.onPod(pod);
  };
  const gone = (pod: V1Pod) => {
    if (known.delete(pod.metadata?.uid ?? "")) handlers.onGone(pod);
  };
  const list = async () => {
    const { items, metadata } = await core.listNamespacedPod({ namespace });
    const uids = new Set(items.map((pod) => pod.metadata?.uid));
    for (const [uid, pod] of known) if (!uids.has(uid)) gone(pod);
    items.forEach(seen);
    return metadata?.resourceVersion;
  };
  const follow = async (resourceVersion: string | undefined) => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const onEvent = (type: string, pod: V1Pod) => {
      if (stopping.signal.aborted) return;
      if (type === "ADDED" || type === "MODIFIED") seen(pod);
      else if (type === "DELETED") gone(pod);
    };
    const request = await new Watch(config).watch(path, { resourceVersion }, onEvent, () => end());
    stopping.signal.addEventListener("abort", () => request.abort());
    if (stopping.signal.aborted) request.abort();
    await ended;
  };
  const run = async (first: string | undefined) => {
    for (let version = first; !stopping.signal.aborted; ) {
      if (version !== undefined) await follow(version);
      if (stopping.signal.aborted) return;
      await sleep(RECONNECT_MS);
      version = await list().catch(() => undefined);
    }
  };
  void run(await list());
  return { pods: () => [...known.values()], stop: () => stopping.abort() };
}
