import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Injected, KubernetesApi } from "../../../test/support/kubernetes-api.ts";
import { silentLogger } from "../../service/logger.ts";
import { connectPodApi, type PodApi } from "./pod-api.ts";
import type { PodApiError } from "./pod-api-error.ts";
import { type NewPod, PodCreation } from "./pod-creation.ts";

let server: KubernetesApi;
let api: PodApi;
let creation: PodCreation;
let calls: Promise<void>[];
let refused: [string, PodApiError][];
let refusal: PromiseWithResolvers<void>;

beforeEach(async () => {
  server = await KubernetesApi.start();
  api = connectPodApi(server.kubeconfig);
  calls = [];
  refused = [];
  refusal = Promise.withResolvers();
  start({});
});

afterEach(async () => {
  await creation.stop();
  await api.close();
});

function start(options: { rate?: number; concurrency?: number }): void {
  creation = new PodCreation({
    create: ({ namespace, pod }) => {
      const call = api.create(namespace, pod);
      calls.push(call.catch(() => {}));
      return call;
    },
    onRefused: ({ id }, error) => {
      refused.push([id, error]);
      refusal.resolve();
    },
    rate: 1_000,
    logger: silentLogger,
    ...options,
  });
}

function newPod(id: string, priority = 1): NewPod {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: id }, spec: { containers: [] } };
  return { id, priority, name: id, namespace: "jobs", pod };
}

const status = (code: number, reason: string, message: string): Injected => {
  return { status: code, body: { kind: "Status", code, reason, message } };
};

/** Answers the first `times` creations of the pod. */
function failing(times: number, answer: Injected, name = "a"): void {
  let left = times;
  server.intercept = ({ method, pod }) =>
    method === "POST" && pod === name && left-- > 0 ? answer : undefined;
}

it("creates all pods, several at once", async () => {
  creation.add(Array.from({ length: 50 }, (_, at) => newPod(`p${at}`)));
  await server.until(() => server.pods.length === 50);
  expect(server.count("POST")).toBe(50);
});

it("creates the most important first", async () => {
  start({ concurrency: 1 });
  creation.add([newPod("first"), newPod("low", -5), newPod("high", 9), newPod("middle"), newPod("high2", 9)]);
  await server.until(() => server.pods.length === 5);
  const names = server.pods.map(({ metadata }) => metadata?.name);
  expect(names).toEqual(["high", "high2", "first", "middle", "low"]);
});

it("keeps to the rate", async () => {
  start({ rate: 50, concurrency: 2 });
  const began = performance.now();
  creation.add(Array.from({ length: 30 }, (_, at) => newPod(`p${at}`)));
  await server.until(() => server.pods.length === 30);
  expect(performance.now() - began).toBeGreaterThan(500);
});

describe("a refusal that passes", () => {
  it.each<[string, Injected]>([
    ["500", status(500, "InternalError", "etcdserver: request timed out")],
    ["503", status(503, "ServiceUnavailable", "the server is currently unable")],
    ["429 with a pause", { status: 429, headers: { "retry-after": "0.1" } }],
    ["a conflict about a quota", status(409, "Conflict", "Operation cannot be fulfilled on resourcequotas")],
    [
      "a used-up quota",
      status(
        403,
        "Forbidden",
        'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
      ),
    ],
    ["expired credentials", { status: 401 }],
    ["a closed connection", "drop"],
    ["an answer that is no JSON", { status: 502, body: undefined as never }],
  ])("is repeated until it succeeds: %s", async (_, answer) => {
    failing(3, answer);
    creation.add([newPod("a")]);
    await server.until(() => server.pods.length === 1);
    // The end of the call.
    await creation.remove("a");
    expect([server.count("POST", "a"), refused]).toEqual([4, []]);
    expect(creation.problem).toBeNull();
  });

  it("is reported as the problem of the executor meanwhile", async () => {
    failing(
      Number.POSITIVE_INFINITY,
      status(403, "Forbidden", 'pods "a" is forbidden: exceeded quota: team'),
    );
    creation.add([newPod("a")]);
    await server.until(() => server.count("POST") === 2);
    expect(creation.problem).toContain("cannot create pods: ");
    expect(creation.problem).toContain("exceeded quota: team");
  });

  it("waits as long as the API server asks for, with all pods", async () => {
    failing(1, { status: 429, headers: { "retry-after": "1" } });
    creation.add([newPod("a")]);
    await server.until(() => server.count("POST") === 1);
    const began = performance.now();
    creation.add([newPod("b")]);
    await server.until(() => server.pods.length === 2);
    expect(performance.now() - began).toBeGreaterThan(900);
  });

  it("does not keep other pods from being created", async () => {
    failing(Number.POSITIVE_INFINITY, status(403, "Forbidden", "exceeded quota: memory"), "large");
    creation.add([newPod("large", 9), newPod("small1"), newPod("small2")]);
    await server.until(() => server.pods.length === 2);
    expect(creation.has("large")).toBe(true);
  });

  it("is repeated at once when there may be room in the quota", async () => {
    failing(6, status(403, "Forbidden", "exceeded quota: pods"));
    const began = performance.now();
    creation.add([newPod("a")]);
    for (let count = 1; count <= 6; count++) {
      await server.until(() => calls.length === count);
      await calls.at(-1);
      await new Promise(setImmediate);
      creation.retry();
    }
    await server.until(() => server.pods.length === 1);
    // The pauses would add up to 8 s at least.
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

it("takes a pod that exists for its own: an answer was lost", async () => {
  failing(1, "lose");
  creation.add([newPod("a")]);
  await server.until(() => server.count("POST", "a") === 2);
  await creation.remove("a");
  expect([server.pods.length, refused]).toEqual([1, []]);
});

describe("a permanent refusal", () => {
  it.each<[string, number, string]>([
    ["422 Invalid", 422, 'Pod "a" is invalid: spec.containers[0].image: Required value'],
    ["400 for an unknown field", 400, 'strict decoding error: unknown field "spec.containers[0].resorces"'],
    ["403 of RBAC", 403, 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'],
    ["403 of a security policy", 403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest"'],
    ["404 of the namespace", 404, 'namespaces "jobs" not found'],
  ])("is passed on with the words of the server: %s", async (_, code, message) => {
    failing(1, status(code, "Any", message));
    creation.add([newPod("a")]);
    await refusal.promise;
    expect(refused).toEqual([["a", expect.objectContaining({ message, status: code })]]);
    await creation.remove("a");
    expect(server.count("POST")).toBe(1);
  });
});

it("creates no pod that was removed, and says whether one was just being created", async () => {
  start({ concurrency: 1 });
  creation.add([newPod("a"), newPod("b")]);
  expect(await Promise.all([creation.remove("a"), creation.remove("b")])).toEqual([true, false]);
  expect(server.count("POST")).toBe(1);
});
