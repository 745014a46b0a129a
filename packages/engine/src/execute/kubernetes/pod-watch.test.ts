import type { V1Pod } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KubernetesApi } from "../../../test/support/kubernetes-api.ts";
import { silentLogger } from "../../service/logger.ts";
import { connectPodApi, type PodApi } from "./pod-api.ts";
import { PodWatch } from "./pod-watch.ts";

const LABELS = { app: "tradewind" };

let server: KubernetesApi;
let api: PodApi;
let watch: PodWatch;
/** The phases of each pod as the watch reported them; "gone" at last. */
let seen: Map<string, string[]>;
let onSeen: () => void;

beforeEach(async () => {
  server = await KubernetesApi.start();
  api = connectPodApi(server.kubeconfig);
  seen = new Map();
  onSeen = () => {};
  const note = (pod: V1Pod, what: string) => {
    const name = pod.metadata?.name ?? "";
    seen.set(name, [...(seen.get(name) ?? []), what]);
    onSeen();
  };
  watch = new PodWatch({
    ...{ api, namespace: "jobs", labels: "app=tradewind,!done", logger: silentLogger },
    onPod: (pod) => note(pod, pod.status?.phase ?? ""),
    onGone: (pod) => note(pod, "gone"),
  });
});

afterEach(async () => {
  await watch.stop();
  await api.close();
});

const add = (name: string, labels: Record<string, string> = LABELS) =>
  server.add({ metadata: { name, labels }, spec: { containers: [] } });
const phase = (name: string, value: string) => server.setStatus(name, { phase: value });
const last = (name: string) => seen.get(name)?.at(-1);

async function until(matches: () => unknown): Promise<void> {
  while (!matches())
    await new Promise<void>((resolve) => {
      onSeen = resolve;
    });
}

async function started(): Promise<void> {
  watch.start();
  await watch.listed;
  await server.until(() => server.watchers === 1);
}

it("reports the pods that exist, and every change, of the selected pods only", async () => {
  add("a");
  add("foreign", { app: "other" });
  await started();
  expect([...seen]).toEqual([["a", ["Pending"]]]);
  add("b");
  add("foreign2", { app: "other" });
  phase("a", "Running");
  server.remove("b");
  await until(() => last("b") === "gone");
  expect([...seen]).toEqual([
    ["a", ["Pending", "Running"]],
    ["b", ["Pending", "gone"]],
  ]);
});

it("lists many pods in pages", async () => {
  for (let at = 0; at < 1_201; at++) add(`p${at}`);
  await started();
  expect(seen.size).toBe(1_201);
  expect(server.count("GET")).toBe(3);
});

it("reports a pod as gone when its labels no longer match", async () => {
  add("a");
  await started();
  await api.label("jobs", "a", { done: "true" });
  await until(() => last("a") === "gone");
});

it("continues where it was when the connection is lost, without listing again", async () => {
  add("a");
  await started();
  for (const value of ["Running", "Failed"]) {
    server.dropWatches();
    phase("a", value);
    await until(() => last("a") === value);
  }
  expect(server.count("GET")).toBe(1);
  expect(seen.get("a")).toEqual(["Pending", "Running", "Failed"]);
});

it("continues from a bookmark, although nothing else has happened for long", async () => {
  add("a");
  await started();
  add("foreign", { app: "other" });
  server.bookmark();
  add("b");
  await until(() => last("b"));
  server.compact();
  server.dropWatches();
  await server.until(() => server.count("WATCH") === 2);
  const version = server.calls.findLast(({ method }) => method === "WATCH")?.query.get("resourceVersion");
  expect(Number(version)).toBe(Number(server.pod("b")?.metadata?.resourceVersion));
  expect(server.count("GET")).toBe(1);
});

it("lists again when its place is gone, and reports what it has missed", async () => {
  add("a");
  add("b");
  await started();
  server.intercept = ({ method }) => (method === "WATCH" ? "drop" : undefined);
  server.dropWatches();
  server.remove("a");
  phase("b", "Running");
  server.compact();
  server.intercept = () => undefined;
  await until(() => last("a") === "gone" && last("b") === "Running");
  expect(server.count("GET")).toBe(2);
});

it("lists again when the API server refuses the watch with status 410", async () => {
  add("a");
  await started();
  let refusals = 0;
  server.intercept = ({ method }) => (method === "WATCH" && refusals++ === 0 ? { status: 410 } : undefined);
  server.dropWatches();
  phase("a", "Running");
  await until(() => last("a") === "Running");
  await server.until(() => server.watchers === 1);
  expect([server.count("GET"), refusals]).toEqual([2, 2]);
});

it("survives repeated and old events", async () => {
  add("a");
  await started();
  phase("a", "Running");
  phase("a", "Succeeded");
  await until(() => last("a") === "Succeeded");
  server.repeat("a");
  await until(() => seen.get("a")?.length === 6);
  server.remove("a");
  await until(() => last("a") === "gone");
  server.repeat("a");
  add("b");
  await until(() => last("b"));
  expect(last("a")).toBe("gone");
});

it("reports the former pod as gone when another one has its name", async () => {
  add("a");
  await started();
  server.intercept = ({ method }) => (method === "WATCH" ? "drop" : undefined);
  server.dropWatches();
  server.remove("a");
  add("a");
  phase("a", "Running");
  server.compact();
  server.intercept = () => undefined;
  await until(() => last("a") === "Running");
  expect(seen.get("a")).toEqual(["Pending", "gone", "Running"]);
});

describe.each([
  ["status 500", { status: 500 }],
  ["status 429", { status: 429, headers: { "retry-after": "1" } }],
  ["status 401", { status: 401 }],
  ["a closed connection", "drop"],
] as const)("%s", (_, answer) => {
  it("does not end the list or the watch", async () => {
    add("a");
    const failures = new Map<string, number>();
    server.intercept = ({ method }) => {
      failures.set(method, (failures.get(method) ?? 0) + 1);
      return (failures.get(method) ?? 0) <= 2 ? answer : undefined;
    };
    await started();
    expect(watch.problem).not.toBeUndefined();
    phase("a", "Running");
    await until(() => last("a") === "Running");
    expect(watch.problem).toBeNull();
    expect([failures.get("GET"), failures.get("WATCH")]).toEqual([3, 3]);
  });
});

it("returns after the API server was away", async () => {
  add("a");
  await started();
  await server.down();
  phase("a", "Running");
  await server.up();
  await until(() => last("a") === "Running");
});

it("sends the token of the kubeconfig and keeps its connection", async () => {
  add("a");
  await started();
  for (let at = 0; at < 20; at++) await api.label("jobs", "a", { at: `${at}` });
  expect(server.connections).toBeLessThanOrEqual(3);
  expect(server.authorization).toBe("Bearer secret");
});
