/**
 * An HTTP server that speaks as much of the Kubernetes API as the executor uses: pods of any namespace with list, watch,
 * creation, deletion and label patches. A test plays the node with `setStatus`, and injects failures.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { V1Pod, V1PodStatus } from "@kubernetes/client-node";
import { afterFile } from "./after-file.ts";
import { httpServer, type TestHttpServer } from "./http-server.ts";

/** An answer in place of the usual one; "drop": the connection is closed; "lose": the call is carried out, its answer is not sent. */
export type Injected =
  | { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }
  | "drop"
  | "lose"
  | undefined;

export interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Of a pod, if the path names one, or the body has one. */
  readonly pod: string;
}

interface Watcher {
  readonly matches: (pod: V1Pod) => boolean;
  readonly response: ServerResponse;
  /** Names of the pods that it has been told of. */
  readonly known: Set<string>;
}

interface Event {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly pod: V1Pod;
}

export class KubernetesApi {
  readonly kubeconfig: string;
  readonly calls: ApiCall[] = [];
  /** Called for every request. */
  intercept: (call: ApiCall) => Injected = () => undefined;
  readonly #http: TestHttpServer;
  readonly #pods = new Map<string, V1Pod>();
  readonly #events: Event[] = [];
  readonly #watchers = new Set<Watcher>();
  #version = 1;
  /** Watches from before this version are refused. */
  #oldest = 0;
  #onChange = Promise.withResolvers<void>();

  private constructor(http: TestHttpServer, kubeconfig: string) {
    this.#http = http;
    this.kubeconfig = kubeconfig;
    http.answer = (request, response) => this.#answer(request, response);
  }

  static async start(): Promise<KubernetesApi> {
    const http = await httpServer(() => {});
    const folder = await mkdtemp(join(tmpdir(), "tw-kubernetes-api-"));
    const kubeconfig = join(folder, "kubeconfig");
    opened.push(() => rm(folder, { recursive: true }));
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server: http.url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "test", user: { token: "secret" } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "jobs" } }],
      "current-context": "test",
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    return new KubernetesApi(http, kubeconfig);
  }

  get pods(): readonly V1Pod[] {
    return [...this.#pods.values()];
  }

  pod(name: string): V1Pod | undefined {
    return this.#pods.get(name);
  }

  /** How often this was called. */
  count(method: string, pod?: string): number {
    return this.calls.filter((call) => call.method === method && (pod === undefined || call.pod === pod))
      .length;
  }

  /** The number of connections that requests have come on. */
  get connections(): number {
    return new Set(this.#http.requests.map(({ port }) => port)).size;
  }

  get authorization(): string | undefined {
    return this.#http.requests.at(-1)?.headers.authorization;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Resolves when `matches` is true, which is checked after every request and every change. */
  async until(matches: () => unknown): Promise<void> {
    while (!matches()) await this.#onChange.promise;
  }

  setStatus(name: string, status: V1PodStatus, metadata: V1Pod["metadata"] = {}): void {
    const pod = this.#required(name);
    this.#store("MODIFIED", { ...pod, metadata: { ...pod.metadata, ...metadata }, status });
  }

  /** The node has ended the pod, or someone has deleted it by force. */
  remove(name: string): void {
    const pod = this.#required(name);
    this.#pods.delete(name);
    this.#record("DELETED", { ...pod, metadata: { ...pod.metadata } });
  }

  add(pod: V1Pod): void {
    this.#store("ADDED", created(pod, pod.metadata?.namespace ?? "jobs"));
  }

  /** Ends all watches without a word. */
  dropWatches(): void {
    for (const { response } of this.#watchers) response.destroy();
    this.#watchers.clear();
  }

  /** Forgets all past events: a watch that continues before now gets 410. */
  compact(): void {
    this.#oldest = this.#version;
  }

  /** Sends to all watches an event that they have had before. */
  repeat(name: string): void {
    for (const { pod, type } of this.#events.filter((event) => event.pod.metadata?.name === name))
      for (const { response } of this.#watchers) send(response, type, pod);
  }

  bookmark(): void {
    const pod = { kind: "Pod", metadata: { resourceVersion: `${this.#version}` } };
    for (const { response } of this.#watchers) send(response, "BOOKMARK", pod);
  }

  down(): Promise<void> {
    this.#watchers.clear();
    return this.#http.down();
  }

  up(): Promise<void> {
    return this.#http.up();
  }

  #required(name: string): V1Pod {
    const pod = this.#pods.get(name);
    if (pod === undefined) throw new Error(`there is no pod ${name}`);
    return pod;
  }

  #changed(): void {
    this.#onChange.resolve();
    this.#onChange = Promise.withResolvers();
  }

  #store(type: "ADDED" | "MODIFIED", pod: V1Pod): void {
    this.#pods.set(pod.metadata?.name ?? "", pod);
    this.#record(type, pod);
  }

  #record(type: Event["type"], pod: V1Pod): void {
    const version = ++this.#version;
    if (pod.metadata) pod.metadata.resourceVersion = `${version}`;
    // A copy: clients of the test do not see later changes.
    const event = { version, type, pod: structuredClone(pod) };
    this.#events.push(event);
    for (const watcher of this.#watchers) tell(watcher, event);
    this.#changed();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { body = "", method = "", url = "" } = this.#http.requests.at(-1) ?? {};
    const { pathname, searchParams: query } = new URL(url, "http://test");
    const [, namespace = "", name = ""] =
      /^\/api\/v1\/namespaces\/([^/]+)\/pods(?:\/([^/]+))?$/.exec(pathname) ?? [];
    const content = body === "" ? {} : (JSON.parse(body) as V1Pod);
    const isWatch = query.get("watch") === "true";
    const call = {
      method: isWatch ? "WATCH" : method,
      path: pathname,
      query,
      pod: name || (content.metadata?.name ?? ""),
    };
    this.calls.push(call);
    const injected = this.intercept(call);
    if (injected === "drop") request.socket.destroy();
    else if (injected === "lose") {
      this.#handle(call, { namespace, content }, null);
      request.socket.destroy();
    } else if (injected !== undefined) {
      response.writeHead(injected.status, { "content-type": "application/json", ...injected.headers });
      response.end(JSON.stringify(injected.body ?? {}));
    } else if (isWatch) this.#watch(call, response);
    else this.#handle(call, { namespace, content }, response);
    this.#changed();
  }

  #handle(
    { method, pod: name, query }: ApiCall,
    { content, namespace }: { readonly namespace: string; readonly content: V1Pod },
    response: ServerResponse | null,
  ): void {
    const reply = (status: number, body: object) => {
      response?.writeHead(status, { "content-type": "application/json" });
      response?.end(JSON.stringify(body));
    };
    const pod = this.#pods.get(name);
    if (method === "GET") {
      const matches = selector(query);
      const items = this.pods.filter((each) => each.metadata?.namespace === namespace && matches(each));
      const from = Number(query.get("continue") ?? 0);
      const limit = Number(query.get("limit") ?? 500);
      const rest = from + limit < items.length ? `${from + limit}` : undefined;
      const metadata = { resourceVersion: `${this.#version}`, continue: rest };
      reply(200, { kind: "PodList", metadata, items: items.slice(from, from + limit) });
    } else if (method === "POST") {
      const stored = created(content, namespace);
      if (pod === undefined) this.#store("ADDED", stored);
      if (pod === undefined) reply(201, stored);
      else reply(409, status(409, "AlreadyExists", `pods "${name}" already exists`));
    } else if (pod === undefined) reply(404, status(404, "NotFound", `pods "${name}" not found`));
    else if (method === "PATCH") {
      const labels = { ...pod.metadata?.labels, ...content.metadata?.labels };
      this.#store("MODIFIED", { ...pod, metadata: { ...pod.metadata, labels } });
      reply(200, pod);
    } else {
      const { preconditions } = content as { readonly preconditions?: { readonly uid?: string } };
      if (preconditions?.uid !== undefined && preconditions.uid !== pod.metadata?.uid) {
        reply(409, status(409, "Conflict", "the UID in the precondition does not match"));
        return;
      }
      if (pod.status?.phase === "Running") {
        const metadata = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 };
        this.#store("MODIFIED", { ...pod, metadata: { ...pod.metadata, ...metadata } } as unknown as V1Pod);
      } else this.remove(name);
      reply(200, pod);
    }
  }

  #watch({ query }: ApiCall, response: ServerResponse): void {
    const from = Number(query.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (from < this.#oldest) {
      send(response, "ERROR", status(410, "Expired", `too old resource version: ${from} (${this.#oldest})`));
      response.end();
      return;
    }
    const watcher = { matches: selector(query), response, known: new Set<string>() };
    for (const event of this.#events)
      if (event.version <= from) remember(watcher, event);
      else tell(watcher, event);
    this.#watchers.add(watcher);
    response.on("close", () => this.#watchers.delete(watcher));
  }
}

function created(pod: V1Pod, namespace: string): V1Pod {
  const creationTimestamp = new Date().toISOString() as unknown as Date;
  const metadata = { ...pod.metadata, namespace, uid: randomUUID(), creationTimestamp, managedFields: [] };
  return { ...pod, metadata, status: pod.status ?? { phase: "Pending" } };
}

/** A pod that no longer matches is deleted as far as the watch is concerned. */
function tell(watcher: Watcher, { pod, type }: Event): void {
  const name = pod.metadata?.name ?? "";
  const wasKnown = watcher.known.has(name);
  const isWanted = watcher.matches(pod) && type !== "DELETED";
  if (isWanted) send(watcher.response, wasKnown ? "MODIFIED" : "ADDED", pod);
  else if (wasKnown) send(watcher.response, "DELETED", pod);
  remember(watcher, { pod, type, version: 0 });
}

function remember({ known, matches }: Watcher, { pod, type }: Event): void {
  const name = pod.metadata?.name ?? "";
  if (matches(pod) && type !== "DELETED") known.add(name);
  else known.delete(name);
}

function send(response: ServerResponse, type: string, object: object): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

function selector(query: URLSearchParams): (pod: V1Pod) => boolean {
  const terms = (query.get("labelSelector") ?? "").split(",").filter((term) => term !== "");
  return (pod) =>
    terms.every((term) => {
      const labels = pod.metadata?.labels ?? {};
      if (term.startsWith("!")) return labels[term.slice(1)] === undefined;
      const [key = "", value] = term.split("=");
      return labels[key] === value;
    });
}

function status(code: number, reason: string, message: string): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message };
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
