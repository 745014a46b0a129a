/** The conformance suite of executors, on a real API server. */
import { beforeAll, describe, it } from "vitest";
import { type ExecutorSubject, executorConformance } from "../../src/execute/conformance/conformance.ts";
import { privateCluster, usesExistingCluster } from "./kubernetes-cluster.ts";
import { kubernetesSubject } from "./kubernetes-subject.ts";

describe.skipIf(usesExistingCluster)("the Kubernetes executor", () => {
  let subject: ExecutorSubject;

  beforeAll(async () => {
    subject = await kubernetesSubject(await privateCluster());
  });

  for (const { name, run } of executorConformance(async () => subject)) it(name, run, 120_000);
});
