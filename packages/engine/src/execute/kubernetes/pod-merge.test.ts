import type { V1Pod } from "@kubernetes/client-node";
import type { Json } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergePod } from "./pod-merge.ts";

const TEMPLATE = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { labels: { team: "data" } },
  spec: {
    nodeSelector: { disk: "ssd", zone: "a" },
    tolerations: [{ key: "spot", operator: "Exists" }],
    volumes: [{ name: "scratch", emptyDir: {} }],
    containers: [
      {
        name: "task",
        image: "tasks:1",
        command: ["tradewind"],
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "2" },
        ],
        envFrom: [{ secretRef: { name: "common" } }],
        volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
        resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "2Gi" } },
      },
      { name: "proxy", image: "proxy:1" },
    ],
  },
} as const satisfies V1Pod;

const spec = (change: object) => mergePod(TEMPLATE as V1Pod, { spec: change }).spec;
const task = (change: object) => spec({ containers: [{ name: "task", ...change }] })?.containers[0];

describe("merging a pod override", () => {
  it("merges objects field by field", () => {
    expect(spec({ nodeSelector: { zone: "b", gpu: "yes" } })?.nodeSelector).toEqual({
      disk: "ssd",
      zone: "b",
      gpu: "yes",
    });
  });

  it("removes a field that is null", () => {
    expect(spec({ nodeSelector: { zone: null } })?.nodeSelector).toEqual({ disk: "ssd" });
    expect(spec({ nodeSelector: null })).not.toHaveProperty("nodeSelector");
  });

  it("merges containers by name, and adds others", () => {
    const containers = spec({
      containers: [
        { name: "task", image: "tasks:2" },
        { name: "cache", image: "cache:1" },
      ],
    })?.containers;
    expect(containers?.map(({ image, name }) => `${name} ${image}`)).toEqual([
      "task tasks:2",
      "proxy proxy:1",
      "cache cache:1",
    ]);
    expect(containers?.[0]).toEqual({ ...TEMPLATE.spec.containers[0], image: "tasks:2" });
  });

  it("adds init containers to a template without any", () => {
    const init = [{ name: "fetch", image: "curl", env: [{ name: "X", value: null }] }];
    expect(spec({ initContainers: init })?.initContainers).toEqual([
      { name: "fetch", image: "curl", env: [{ name: "X" }] },
    ]);
  });

  it("replaces variables by name, as a whole", () => {
    const secret = { secretKeyRef: { name: "db", key: "url" } };
    expect(
      task({
        env: [
          { name: "B", valueFrom: secret },
          { name: "C", value: "3" },
        ],
      })?.env,
    ).toEqual([
      { name: "A", value: "1" },
      { name: "B", valueFrom: secret },
      { name: "C", value: "3" },
    ]);
  });

  it("replaces volumes by name, and mounts by path", () => {
    const claim = { name: "scratch", persistentVolumeClaim: { claimName: "big" } };
    expect(spec({ volumes: [claim] })?.volumes).toEqual([claim]);
    expect(
      task({ volumeMounts: [{ mountPath: "/scratch", name: "scratch", readOnly: true }] })?.volumeMounts,
    ).toEqual([{ mountPath: "/scratch", name: "scratch", readOnly: true }]);
  });

  it("adds tolerations and sources of variables, each once", () => {
    const gpu = { key: "gpu", operator: "Exists" };
    expect(spec({ tolerations: [gpu, { operator: "Exists", key: "spot" }] })?.tolerations).toEqual([
      ...TEMPLATE.spec.tolerations,
      gpu,
    ]);
    const own = { secretRef: { name: "own" } };
    expect(task({ envFrom: [own] })?.envFrom).toEqual([{ secretRef: { name: "common" } }, own]);
  });

  it("replaces all other lists", () => {
    expect(task({ command: ["sh"] })?.command).toEqual(["sh"]);
    expect(task({ securityContext: { capabilities: { drop: ["ALL"] } } })?.securityContext).toEqual({
      capabilities: { drop: ["ALL"] },
    });
  });

  it("merges resources by name", () => {
    expect(
      task({ resources: { requests: { cpu: "4" }, limits: { "nvidia.com/gpu": 1 } } })?.resources,
    ).toEqual({
      requests: { cpu: "4", memory: "1Gi" },
      limits: { memory: "2Gi", "nvidia.com/gpu": 1 },
    });
  });

  it("rejects an element without the key that tells what it changes", () => {
    expect(() => spec({ containers: [{ image: "x" }] })).toThrow(
      "podOverride.spec.containers[0] has no name. Its name tells which element of the template it changes.",
    );
    expect(() => task({ volumeMounts: [{ name: "scratch" }] })).toThrow(
      "podOverride.spec.containers[0].volumeMounts[0] has no mountPath",
    );
    expect(() => spec({ containers: ["task"] })).toThrow("podOverride.spec.containers[0] must be an object.");
  });

  it("leaves the template unchanged", () => {
    const before = structuredClone(TEMPLATE);
    task({ env: [{ name: "A", value: "9" }], resources: { limits: null } });
    expect(TEMPLATE).toEqual(before);
  });
});

describe("for any pods", () => {
  const name = fc.constantFrom("task", "proxy", "a", "b");
  const variables = fc.uniqueArray(fc.record({ name, value: fc.string() }), {
    selector: (each) => each.name,
  });
  const container = fc.record(
    { name, image: fc.string(), command: fc.array(fc.string()), env: variables },
    { requiredKeys: ["name"] },
  );
  const pod = fc.record(
    {
      metadata: fc.record({ labels: fc.dictionary(name, fc.string()) }, { requiredKeys: [] }),
      spec: fc.record(
        {
          containers: fc.uniqueArray(container, { selector: (each) => each.name }),
          nodeSelector: fc.dictionary(name, fc.string()),
          tolerations: fc.uniqueArray(fc.record({ key: name }), { selector: (each) => each.key }),
          hostNetwork: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  );

  it("merging nothing changes nothing", () => {
    fc.assert(fc.property(pod, (base) => void expect(mergePod(base, {})).toEqual(base)));
  });

  it("merging into nothing gives the override", () => {
    fc.assert(fc.property(pod, (change) => void expect(mergePod({}, change)).toEqual(change)));
  });

  it("merging twice is merging once", () => {
    fc.assert(
      fc.property(pod, pod, (base, change) => {
        const once = mergePod(base, change);
        expect(mergePod(once, change)).toEqual(once);
      }),
    );
  });

  it("merging step by step is merging the merged overrides", () => {
    fc.assert(
      fc.property(pod, pod, pod, (base, first, second) => {
        const steps = mergePod(mergePod(base, first), second) as unknown as Json;
        expect(steps).toEqual(mergePod(base, mergePod(first, second)));
      }),
    );
  });
});
