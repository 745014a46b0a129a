/**
 * The calls of the Kubernetes API that the executor makes, with the authentication, the HTTP library and the watch of the
 * official client. Its generated methods are not used: they drop fields that this version of the client does not know,
 * and with them the typing errors of a template, which the API server reports if it gets to see them.
 *
 * The client takes a second of CPU and 90 MB to load: this module is imported only by a process that has the executor.
 */
import {
  type HttpMethod,
  IsomorphicFetchHttpLibrary,
  KubeConfig,
  RequestContext,
  type V1Pod,
  type V1PodList,
  Watch,
} from "@kubernetes/client-node";
import { EngineError } from "../../service/errors.ts";
import { errorOfAnswer, errorOfConnection, PodApiError } from "./pod-api-error.ts";

const TIMEOUT_MS = 30_000;
const PAGE = 500;
/**
 * The server ends a watch after this time and sends a bookmark shortly before. The client gives up a watch after 30 s
 * without any event, so a dead connection is noticed, and an idle one continues where it was.
 */
const WATCH_SECONDS = 25;
/** Connections are replaced after this time: certificates may have been renewed. */
const CONNECTIONS_MS = 5 * 60_000;

/** Dates in pods are texts. */
export interface PodPage {
  readonly pods: readonly V1Pod[];
  /** Where a watch continues. */
  readonly version: string;
  /** Of the next page. */
  readonly next: string | undefined;
}

export type PodEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

export interface PodWatchRequest {
  readonly namespace: string;
  readonly labels: string;
  readonly version: string;
  readonly onEvent: (type: PodEventType, pod: V1Pod) => void;
  readonly signal: AbortSignal;
}

interface Call {
  readonly method: HttpMethod;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  readonly contentType?: string;
}

/** All methods reject with PodApiError. */
export class PodApi {
  readonly #config: PooledKubeConfig;
  readonly #http = new IsomorphicFetchHttpLibrary();

  constructor(config: PooledKubeConfig) {
    this.#config = config;
  }

  /** The namespace of the kubeconfig's context, or of the pod that this process runs in. */
  get namespace(): string {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace ?? "default";
  }

  async create(namespace: string, pod: V1Pod): Promise<void> {
    const query = { fieldValidation: "Strict" };
    await this.#call({ method: "POST", path: podsPath(namespace), query, body: pod });
  }

  /** A pod that runs gets its grace period. @param uid Deletes no other pod of the same name. */
  async delete(namespace: string, name: string, uid?: string): Promise<void> {
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    const body = { apiVersion: "v1", kind: "DeleteOptions", ...preconditions };
    await this.#call({ method: "DELETE", path: podsPath(namespace, name), body });
  }

  async label(namespace: string, name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const contentType = "application/merge-patch+json";
    const body = { metadata: { labels } };
    await this.#call({ method: "PATCH", path: podsPath(namespace, name), body, contentType });
  }

  async list(namespace: string, labels: string, next?: string): Promise<PodPage> {
    const query = { labelSelector: labels, limit: PAGE, continue: next };
    const found = await this.#call({ method: "GET", path: podsPath(namespace), query });
    // In this JSON, the token of the next page is called `continue`.
    const { items, metadata } = found as V1PodList & { readonly metadata: { readonly continue?: string } };
    return { pods: items, version: metadata.resourceVersion ?? "", next: metadata.continue || undefined };
  }

  /** Resolves when the watch has ended; rejects if it failed. */
  async watch({ labels, namespace, onEvent, signal, version }: PodWatchRequest): Promise<void> {
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    const query = {
      labelSelector: labels,
      resourceVersion: version,
      allowWatchBookmarks: true,
      timeoutSeconds: WATCH_SECONDS,
    };
    const stop = new AbortController();
    const end = (error?: unknown) => {
      stop.abort();
      if (!error || signal.aborted || (error as Error).name === "TimeoutError") resolve();
      else reject(error instanceof PodApiError ? error : watchError(error));
    };
    const onLine = (type: string, object: unknown) => {
      // The client still reads what has arrived before the end.
      if (stop.signal.aborted) return;
      if (type === "ERROR") end(errorOfAnswer((object as { code?: number }).code ?? 500, object));
      else onEvent(type as PodEventType, object as V1Pod);
    };
    const abort = () => end();
    signal.addEventListener("abort", abort);
    try {
      signal.throwIfAborted();
      const watching = await new Watch(this.#config).watch(podsPath(namespace), query, onLine, end);
      if (stop.signal.aborted) watching.abort();
      stop.signal.addEventListener("abort", () => watching.abort());
      await promise;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async close(): Promise<void> {
    await this.#config.close();
  }

  async #call({ body, contentType, method, path, query = {} }: Call): Promise<unknown> {
    const context = new RequestContext(`${this.#config.getCurrentCluster()?.server}${path}`, method);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) context.setQueryParam(name, `${value}`);
    context.setHeaderParam("Accept", "application/json");
    if (body !== undefined) {
      context.setHeaderParam("Content-Type", contentType ?? "application/json");
      context.setBody(JSON.stringify(body));
    }
    context.setSignal(AbortSignal.timeout(TIMEOUT_MS));
    let status: number;
    let headers: Record<string, string>;
    let text: string;
    try {
      await this.#config.applySecurityAuthentication(context);
      const response = await this.#http.send(context).toPromise();
      ({ headers, httpStatusCode: status } = response);
      text = await response.body.text();
    } catch (error) {
      throw errorOfConnection(error);
    }
    if (status < 200 || status > 299) throw errorOfAnswer(status, text, headers);
    try {
      return JSON.parse(text);
    } catch {
      throw errorOfConnection(new Error("it did not answer with JSON"));
    }
  }
}

/** @param kubeconfig A path. Default: KUBECONFIG, the default file, or the account of the pod that this process runs in. */
export function connectPodApi(kubeconfig?: string): PodApi {
  const config = new PooledKubeConfig();
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
  } catch (error) {
    throw noCluster(`the kubeconfig cannot be read: ${(error as Error).message}`);
  }
  const cluster = config.getCurrentCluster();
  // The client's answer to a machine without any configuration.
  if (cluster === null || cluster.server === "http://localhost:8080")
    throw noCluster("there is no kubeconfig");
  return new PodApi(config);
}

/** The client makes new connections for each call; this one keeps them. */
class PooledKubeConfig extends KubeConfig {
  #dispatcher: ReturnType<RequestContext["getDispatcher"]>;
  #replaceAt = 0;

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context);
    if (performance.now() >= this.#replaceAt) {
      // Calls under way end on the old connections.
      void this.#dispatcher?.close();
      this.#dispatcher = context.getDispatcher();
      this.#replaceAt = performance.now() + CONNECTIONS_MS;
    }
    if (this.#dispatcher !== undefined) context.setDispatcher(this.#dispatcher);
  }

  async close(): Promise<void> {
    await this.#dispatcher?.destroy();
  }
}

function podsPath(namespace: string, name?: string): string {
  const pods = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  return name === undefined ? pods : `${pods}/${encodeURIComponent(name)}`;
}

function watchError(error: unknown): PodApiError {
  const { message, statusCode } = error as { readonly message: string; readonly statusCode?: number };
  return statusCode === undefined ? errorOfConnection(error) : errorOfAnswer(statusCode, message);
}

function noCluster(why: string): EngineError {
  return new EngineError(
    "CONFIG_INVALID",
    `The Kubernetes executor has no cluster: ${why}. Set KUBECONFIG, or run this service in a pod with a service account.`,
    { details: { setting: "KUBECONFIG" } },
  );
}
