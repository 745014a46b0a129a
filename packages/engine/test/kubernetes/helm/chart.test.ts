import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { V1Container, V1Deployment, V1Job, V1LabelSelector, V1PodSpec } from "@kubernetes/client-node";
import { beforeAll, describe, expect, it } from "vitest";
import { METRICS } from "../../../src/api/metrics/installation-metrics.ts";
import { adhoc, type Database } from "../../../src/store/database/database.ts";
import { testDatabase } from "../../support/test-database.ts";
import { EXECUTOR_RULES } from "../cluster-namespace.ts";
import { CHART, helm, type KubernetesObject, render, VALUE_SETS } from "./chart.ts";

const QUEUE = VALUE_SETS["workers that KEDA scales"];
const METERED = VALUE_SETS["metrics, by which KEDA scales workers"];
const PROMETHEUS = METERED.networkPolicy.metricsFrom;

describe.each(Object.entries(VALUE_SETS))("chart with %s", (_, values) => {
  let objects: readonly KubernetesObject[];
  let pods: readonly V1PodSpec[];

  beforeAll(async () => {
    objects = await render(values);
    pods = [...ofKind<V1Deployment>(objects, "Deployment"), ...ofKind<V1Job>(objects, "Job")].map(
      ({ spec }) => spec?.template.spec as V1PodSpec,
    );
  });

  it("passes the linter", async () => {
    expect(await helm(["lint", "--strict", CHART], { values })).toContain("0 chart(s) failed");
  });

  it("runs nothing as root, and writes to its volumes only", () => {
    expect(pods.length).toBeGreaterThanOrEqual(5);
    expect(pods.map(({ securityContext }) => securityContext?.runAsNonRoot)).toEqual(pods.map(() => true));
    const contexts = pods.flatMap(containers).map(({ securityContext }) => securityContext);
    expect(contexts).toEqual(
      contexts.map(() => ({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })),
    );
  });

  it("takes secrets from Secrets", () => {
    const variables = pods.flatMap(containers).flatMap(({ env = [] }) => env);
    const secret = /^(DATABASE_URL|REDIS_URL|\w*TOKEN|TRADEWIND_SECRET_KEY)$/;
    const values = variables.filter(({ name }) => secret.test(name)).map(({ valueFrom }) => valueFrom);
    expect(values.length).toBeGreaterThan(0);
    expect(values).toEqual(values.map(() => ({ secretKeyRef: expect.anything() })));
    expect(objects.filter(({ kind }) => kind === "Secret")).toEqual([]);
  });

  it("kills no pod while it drains", () => {
    for (const {
      terminationGracePeriodSeconds,
      containers: [container],
    } of pods) {
      const drain = container?.env?.find(({ name }) => name === "TRADEWIND_DRAIN")?.value;
      const graceMs = container?.env?.find(({ name }) => name === "TRADEWIND_STOP_GRACE_MS")?.value;
      if (drain === undefined) continue;
      expect(terminationGracePeriodSeconds).toBe(Number.parseInt(drain, 10) + Number(graceMs) / 1_000 + 5);
    }
  });

  it("probes every service that keeps running", () => {
    const services = ofKind<V1Deployment>(objects, "Deployment").map((each) => container(each));
    for (const { env, livenessProbe, name, ports, readinessProbe, startupProbe } of services) {
      for (const probe of [livenessProbe, readinessProbe, startupProbe])
        expect(ports?.map((port) => port.name)).toContain(probe?.httpGet?.port);
      const health = env?.find((variable) => variable.name === "TRADEWIND_HEALTH_PORT")?.value;
      if (name !== "api") expect(health).toBe(`${ports?.[0]?.containerPort}`);
    }
  });

  it("has a disruption budget per Deployment, for the same pods", () => {
    const selectors = (kind: string) =>
      ofKind<V1Deployment>(objects, kind).map(({ spec }) => spec?.selector.matchLabels);
    expect(selectors("PodDisruptionBudget")).toEqual(selectors("Deployment"));
  });
});

describe("chart", () => {
  it("gives workers neither the database nor the secret key, and schedulers no worker token", async () => {
    const objects = await render(QUEUE);
    const names = (component: string) =>
      container(deployment(objects, component))
        .env?.filter(({ valueFrom }) => valueFrom)
        .map(({ name }) => name);
    expect(names("worker-gpu")).toEqual(["TRADEWIND_TOKEN", "REDIS_URL"]);
    expect(names("scheduler")).toEqual(["DATABASE_URL", "TRADEWIND_SECRET_KEY", "REDIS_URL"]);
    expect(names("api")).toEqual(["DATABASE_URL", "TRADEWIND_SECRET_KEY"]);
  });

  it("gives each group of workers its queues and its settings, zero included", async () => {
    const objects = await render(QUEUE);
    const command = (component: string) => container(deployment(objects, component)).args?.join(" ");
    expect(command("worker-default")).toBe("worker --queues default,it's --concurrency 4");
    expect(command("worker-gpu")).toBe("worker --queues gpu --concurrency 1");
    const spec = (component: string) => deployment(objects, component).spec;
    expect(spec("worker-default")?.replicas).toBe(2);
    expect(spec("worker-default")?.template.spec?.terminationGracePeriodSeconds).toBe(610);
    expect(spec("worker-gpu")?.replicas).toBeUndefined();
    expect(spec("worker-gpu")?.template.spec?.terminationGracePeriodSeconds).toBe(10);
    const scaled = objects.find(({ kind, metadata }) => kind === "ScaledObject" && /gpu/.test(metadata.name));
    expect(scaled?.spec).toMatchObject({ minReplicaCount: 0, maxReplicaCount: 10 });
  });

  it("has Prometheus scrape the API with the token for metrics, and the other services without one", async () => {
    const objects = await render(METERED);
    const [api] = ofKind<KubernetesObject>(objects, "ServiceMonitor");
    expect(api).toMatchObject({
      metadata: { labels: { release: "prometheus" } },
      spec: {
        endpoints: [
          {
            ...{ port: "http", path: "/metrics", interval: "30s" },
            authorization: { credentials: { name: "tradewind-metrics", key: "TRADEWIND_TOKEN" } },
          },
        ],
      },
    });
    const service = ofKind<KubernetesObject>(objects, "Service").find(({ metadata }) =>
      metadata.name.endsWith("-api"),
    );
    expect(service?.metadata).toMatchObject({ labels: selectorOf(api) });
    const [others] = ofKind<KubernetesObject>(objects, "PodMonitor");
    const matchLabels = selectorOf(others);
    const scraped = ofKind<V1Deployment>(objects, "Deployment").filter((each) =>
      container(each).ports?.some(({ name }) => name === "health"),
    );
    expect(scraped.map(({ metadata }) => metadata?.name)).toEqual([
      ...["tw-tradewind-scheduler", "tw-tradewind-triggerer", "tw-tradewind-dag-processor"],
      "tw-tradewind-worker-default",
    ]);
    for (const { spec } of scraped) expect(spec?.template.metadata?.labels).toMatchObject(matchLabels);
    expect(others?.spec?.podMetricsEndpoints).toEqual([
      { port: "health", path: "/metrics", interval: "30s" },
    ]);
  });

  it("lets Prometheus reach what it scrapes, through closed networks", async () => {
    const policies = ofKind<KubernetesObject>(await render(METERED), "NetworkPolicy");
    const rules = (name: string) =>
      policies.find(({ metadata }) => metadata.name === name)?.spec?.ingress as
        | { from: unknown }[]
        | undefined;
    expect(rules("tw-tradewind")).toBeUndefined();
    expect(rules("tw-tradewind-metrics")).toEqual([{ ports: [{ port: "health" }], from: PROMETHEUS }]);
    expect(rules("tw-tradewind-api")?.[0]?.from).toEqual(
      expect.arrayContaining([...METERED.networkPolicy.apiFrom, ...PROMETHEUS]),
    );
    const unmetered = ofKind<KubernetesObject>(
      await render({ ...METERED, metrics: {}, workers: [] }),
      "NetworkPolicy",
    );
    expect(unmetered.map(({ metadata }) => metadata.name)).toEqual(["tw-tradewind", "tw-tradewind-api"]);
    expect(JSON.stringify(unmetered)).not.toContain("monitoring");
  });

  it("scales by metrics of this release, read from Prometheus", async () => {
    const objects = await render(METERED);
    expect(objects.filter(({ kind }) => kind === "TriggerAuthentication")).toEqual([]);
    const triggers = ofKind<KubernetesObject>(objects, "ScaledObject").map(({ spec }) => spec?.triggers);
    const series = 'namespace="jobs", service="tw-tradewind-api"';
    const orZero = `or 0 * max(tradewind_info{${series}})`;
    const trigger = (query: string, threshold: string) => [
      {
        type: "prometheus",
        metadata: {
          ...{ serverAddress: "http://prometheus.monitoring:9090", query: `${query} ${orZero}`, threshold },
          ignoreNullValues: "false",
        },
      },
    ];
    const queues = String.raw`queue=~"default|a\\.b\"c"`;
    expect(triggers).toEqual([
      trigger(
        `sum(max by (queue, state) (tradewind_queue_tasks{${series}, executor="queue", ${queues}}))`,
        "8",
      ),
      trigger(`sum(max by (queue) (tradewind_triggers{${series}, queue=~"default"}))`, "8000"),
    ]);
    const docs = readFileSync(join(CHART, "../../../docs/guides/deployment.md"), "utf8");
    for (const [{ metadata }] of triggers as [{ metadata: { query: string } }][])
      expect(docs).toContain(metadata.query.replace(String.raw`|a\\.b\"c`, ""));
    // Names and labels as served.
    for (const { labels, name } of METRICS)
      if (name === "tradewind_queue_tasks") expect(labels).toEqual(["executor", "queue", "state"]);
    const names = [...JSON.stringify(triggers).matchAll(/tradewind_[a-z_]+/g)].map(([name]) => name);
    const served = ["tradewind_info", ...METRICS.map(({ name }) => name)];
    expect(names.filter((name) => !served.includes(name))).toEqual([]);
  });

  it("lets the variables of a service override those of all services", async () => {
    const objects = await render(VALUE_SETS["volumes, places and a closed API"]);
    const level = (component: string) =>
      container(deployment(objects, component)).env?.find(({ name }) => name === "TRADEWIND_LOG_LEVEL")
        ?.value;
    expect([level("scheduler"), level("api")]).toEqual(["warn", "debug"]);
  });

  it("gives schedulers of the Kubernetes executor the rights that it needs, and others none", async () => {
    const objects = await render(VALUE_SETS["a pod per task"]);
    expect(objects.filter(({ kind }) => kind === "Role").map(({ rules }) => rules)).toEqual([EXECUTOR_RULES]);
    const accounts = ofKind<V1Deployment>(objects, "Deployment")
      .filter(({ spec }) => spec?.template.spec?.automountServiceAccountToken !== false)
      .map(({ metadata }) => metadata?.name);
    expect(accounts).toEqual(["tw-tradewind-scheduler"]);
  });

  it.each([
    ["an unknown setting", { scheduler: { replica: 3 } }, "additional properties 'replica' not allowed"],
    ["a wrong type", { api: { replicas: "two" } }, "got string, want integer"],
    ["an unknown executor", { executor: "celery" }, "/executor"],
    [
      "workers without the queue executor",
      { workers: [{ name: "a", queues: ["a"] }] },
      "set executor to queue",
    ],
    [
      "Prometheus as the source of KEDA without metrics",
      { metrics: { prometheusUrl: "http://prometheus:9090" } },
      "set metrics.enabled",
    ],
    ["no pod template", { executor: "kubernetes" }, "the Kubernetes executor needs a pod template"],
  ])("rejects %s", async (_, values, message) => {
    await expect(render(values)).rejects.toThrow(message);
  });
});

describe("queries of KEDA", () => {
  let db: Database;
  let queries: Record<string, string>;
  let role: string;

  beforeAll(async () => {
    const objects = (await render({ ...QUEUE, workerDefaults: { autoscaling: { enabled: true } } })).filter(
      ({ kind }) => kind === "ScaledObject",
    );
    queries = Object.fromEntries(
      objects.map(({ metadata, spec }) => {
        const [trigger] = (spec?.triggers ?? []) as { metadata: { query: string } }[];
        return [metadata.name.replace("tw-tradewind-", ""), trigger?.metadata.query ?? ""];
      }),
    );
    const installation = await testDatabase();
    db = installation.db;
    role = `tw_scaling_${process.pid}`;
    await db.rows(adhoc(`CREATE ROLE ${role}`), []);
    await db.rows(adhoc(`GRANT SELECT ON queue_depth, trigger_depth TO ${role}`), []);
    return async () => {
      await db.rows(adhoc(`DROP OWNED BY ${role}`), []);
      await db.rows(adhoc(`DROP ROLE ${role}`), []);
    };
  });

  it("are those of the docs", async () => {
    const docs = readFileSync(join(CHART, "../../../docs/guides/deployment.md"), "utf8");
    const shown = Object.values(queries).map((query) => query.replace(/IN \(.*\)/, "IN ('default')"));
    expect(shown).toEqual(shown.map((query) => (docs.includes(`${query};`) ? query : "missing")));
  });

  const answer = async (name: string) => {
    // As the role of the docs.
    return await db.transaction(async (tx) => {
      await tx.rows(adhoc(`SET LOCAL ROLE ${role}`), []);
      const [row] = await tx.rows<Record<string, string>>(adhoc(queries[name] ?? ""), []);
      return Number(Object.values(row ?? {})[0]);
    });
  };

  it("count tasks that wait for a worker of these queues or run on one", async () => {
    await db.rows(
      adhoc(`INSERT INTO assignment (id, kind, executor, queue, priority, content)
        SELECT gen_random_uuid(), 'attempt', executor, queue, 1, '{}' FROM (VALUES
          ('queue', 'default'), ('queue', 'it''s'), ('queue', 'gpu'), ('queue', 'other'), ('kubernetes', 'gpu')
        ) AS given(executor, queue)`),
      [],
    );
    expect(await answer("worker-default")).toBe(2);
    expect(await answer("worker-gpu")).toBe(1);
  });

  it("count triggers that have to run, once per replica, without timers", async () => {
    expect(await answer("triggerer")).toBe(0);
    await db.rows(
      adhoc(`INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at, timed)
        SELECT decode(md5(random()::text), 'hex'), 'http', '{}', queue, replicas, now() + after, timed::json FROM (VALUES
          ('default', 1, interval '-1 s', NULL), ('slow', 2, interval '-1 s', NULL), ('other', 1, interval '-1 s', NULL),
          ('default', 1, interval '1 h', NULL), ('default', 1, interval '-1 s', '{}')
        ) AS given(queue, replicas, after, timed)`),
      [],
    );
    expect(await answer("triggerer")).toBe(3);
  });
});

function ofKind<T>(objects: readonly KubernetesObject[], kind: string): T[] {
  return objects.filter((object) => object.kind === kind) as T[];
}

function deployment(objects: readonly KubernetesObject[], component: string): V1Deployment {
  const found = ofKind<V1Deployment>(objects, "Deployment").find(
    ({ metadata }) => metadata?.name === `tw-tradewind-${component}`,
  );
  if (found === undefined) throw new Error(`no Deployment of ${component}`);
  return found;
}

function selectorOf(object: KubernetesObject | undefined): Readonly<Record<string, string>> {
  return (object?.spec?.selector as V1LabelSelector | undefined)?.matchLabels ?? {};
}

function container({ spec }: V1Deployment): V1Container {
  return spec?.template.spec?.containers[0] as V1Container;
}

function containers({ containers, initContainers = [] }: V1PodSpec): V1Container[] {
  return [...initContainers, ...containers];
}
