import type { V1Pod } from "@kubernetes/client-node";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import { watchPods } from "./pod-watch.ts";

/** Waits until the pod matches. */
export async function podThat(
  { config, name: namespace }: ClusterNamespace,
  name: string,
  matches: (pod: V1Pod) => boolean,
): Promise<V1Pod> {
  const { promise, resolve } = Promise.withResolvers<V1Pod>();
  const onPod = (pod: V1Pod) => {
    if (pod.metadata?.name === name && matches(pod)) resolve(pod);
  };
  const watch = await watchPods(config, { onPod, onGone: () => {} }, namespace);
  return promise.finally(() => watch.stop());
}

/** Waits until there is no such pod, and returns its last version; undefined if there is none now. */
export function podGone(namespace: ClusterNamespace, name: string): Promise<V1Pod | undefined> {
  return gone(namespace, name, async () => {});
}

/** Deletes it and waits for its end. */
export function deletePod(
  namespace: ClusterNamespace,
  name: string,
  gracePeriodSeconds?: number,
): Promise<V1Pod | undefined> {
  return gone(namespace, name, () =>
    namespace.core.deleteNamespacedPod({ namespace: namespace.name, name, gracePeriodSeconds }),
  );
}

async function gone(
  { config, name: namespace }: ClusterNamespace,
  name: string,
  whileWatched: () => Promise<unknown>,
): Promise<V1Pod | undefined> {
  const { promise, resolve } = Promise.withResolvers<V1Pod | undefined>();
  const onGone = (pod: V1Pod) => {
    if (pod.metadata?.name === name) resolve(pod);
  };
  const watch = await watchPods(config, { onPod: () => {}, onGone }, namespace);
  try {
    if (!watch.pods().some(({ metadata }) => metadata?.name === name)) return undefined;
    await whileWatched();
    return await promise;
  } finally {
    watch.stop();
  }
}
