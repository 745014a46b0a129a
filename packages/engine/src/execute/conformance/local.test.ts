import { beforeAll, describe, it } from "vitest";
import { localSubject } from "../../../test/execute/executor-subject.ts";
import { type ExecutorSubject, executorConformance } from "./conformance.ts";

describe("the local executor", () => {
  let subject: ExecutorSubject;

  beforeAll(async () => {
    subject = await localSubject();
  });

  for (const { name, run } of executorConformance(async () => subject)) it(name, run, 120_000);
});
