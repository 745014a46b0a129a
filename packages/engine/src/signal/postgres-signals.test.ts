import { describe, it } from "vitest";
import { signalSubject } from "../../test/support/signal-subject.ts";
import { signalServiceConformance } from "./conformance/conformance.ts";

describe("signals on PostgreSQL", () => {
  for (const { name, run } of signalServiceConformance(() => signalSubject())) it(name, run);
});

describe("signals on PostgreSQL, with NOTIFY off", () => {
  for (const { name, run } of signalServiceConformance(() => signalSubject({ notify: false }))) it(name, run);
});
