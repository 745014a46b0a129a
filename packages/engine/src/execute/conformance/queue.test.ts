import { beforeAll, describe, it } from "vitest";
import { queueSubject } from "../../../test/execute/executor-subject.ts";
import { type ExecutorSubject, executorConformance } from "./conformance.ts";

describe("the queue executor", () => {
  let subject: ExecutorSubject;

  beforeAll(async () => {
    subject = await queueSubject();
  });

  for (const { name, run } of executorConformance(async () => subject)) it(name, run, 120_000);
});
