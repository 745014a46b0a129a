/** Transfers of large values between an executor and its task processes. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";
import { type AttemptOutcome, type LargePlace, LargeValue, type OutputReference } from "../model/index.ts";
import { LargeOutputs } from "../output/large-outputs.ts";
import { PIECE_LENGTH } from "./attempt/protocol.ts";
import type { AttemptAssignment } from "./contract.ts";
import { piecesOf, sizeUp } from "./task-runner/large-values.ts";

describe("an executor with a store for large outputs", () => {
  let under: ExecutorUnderTest;
  let outputs: LargeOutputs;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tradewind-outputs-"));
    let objects = 0;
    outputs = new LargeOutputs({
      store: "file:",
      folder,
      limits: { inline: 1_000, most: 2_000_000 },
      register: ({ attempt, mapIndex, runId, taskId, ...facts }) =>
        Promise.resolve({ id: ++objects, ...facts }),
    });
    under = await ExecutorUnderTest.start({ outputs, parallelism: 1 });
  });

  afterAll(async () => {
    await under[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const returned = (value: unknown, more: Partial<AttemptAssignment> = {}) =>
    under.run("returns", { conf: { value } as never, ...more });
  const storedBy = (outcome: AttemptOutcome): OutputReference => {
    if (outcome.kind !== "success" || !outcome.stored) throw new Error(JSON.stringify(outcome));
    return outcome.stored;
  };

  it("reports small outputs with the end of the task, and stores large ones before it", async () => {
    expect(await returned("x".repeat(900))).toEqual({ kind: "success", output: "x".repeat(900), skip: [] });
    const value = Array.from({ length: 3_000 }, (_, n) => `${n} é 😀 "`);
    const reference = storedBy(await returned(value));
    expect(reference).toMatchObject({ store: "file:", items: 3_000 });
    expect(JSON.parse(await readFile(join(folder, reference.key), "utf8"))).toEqual(value);
  });

  it("passes large and small inputs to tasks", async () => {
    const list = [{ a: "y".repeat(2_000) }, [1, "zwei"]];
    const value = new LargeValue(storedBy(await returned(list)));
    const at = (...path: (string | number)[]): LargePlace["at"] => ["call", "inputs", ...path];
    const inputs = {
      whole: { state: "success", value: null },
      some: { state: "success", value: [7, null, null] },
    } as const;
    const large = [
      { at: at("whole", "value"), value },
      { at: at("some", "value", 1), value: value.item(1) },
      { at: at("some", "value", 2), value: value.item(1).item(1) },
    ];
    const stored = new LargeValue(storedBy(await under.run("echo", { inputs, large })));
    expect(await outputs.read(stored)).toMatchObject({
      inputs: { whole: { value: list }, some: { value: [7, [1, "zwei"], "zwei"] } },
    });
  });

  it("rejects an output over the limit, and names the limit", async () => {
    expect(await returned("x".repeat(2_000_000))).toMatchObject({
      kind: "failed",
      retry: false,
      error: {
        code: "TASK_OUTPUT_TOO_LARGE",
        message: expect.stringMatching(
          /2000002 bytes .* 2000000 bytes are the limit.*TRADEWIND_OUTPUT_LIMIT/,
        ),
      },
    });
  });

  it("discards an output whose task dies while it is sent", async () => {
    expect(await under.run("diesSending")).toMatchObject({
      kind: "failed",
      error: { code: "TASK_PROCESS_DIED" },
    });
    const scratch = join(folder, ".scratch");
    const [own] = await readdir(scratch);
    await expect.poll(() => readdir(join(scratch, own!))).toEqual([]);
    expect(await readdir(join(folder, "testing", "7"))).not.toContain("diesSending");
  });

  it("fails an attempt whose input is missing, and runs the others", async () => {
    const reference = storedBy(await returned("z".repeat(5_000)));
    await rm(join(folder, reference.key));
    const inputs = { gone: { state: "success", value: null } } as const;
    const large = [{ at: ["call", "inputs", "gone", "value"], value: new LargeValue(reference) }];
    expect(await under.run("echo", { inputs, large })).toMatchObject({
      kind: "failed",
      retry: true,
      error: { code: "OUTPUT_MISSING" },
    });
    expect(await returned(1)).toMatchObject({ kind: "success", output: 1 });
  });
});

describe("pieces of a text", () => {
  it("add up to the text without splitting a character", () => {
    const edge = fc.integer({ min: PIECE_LENGTH - 3, max: PIECE_LENGTH + 3 });
    fc.assert(
      fc.property(edge, fc.string({ unit: fc.constantFrom("x", "😀", "\n") }), (length, rest) => {
        const text = `${"x".repeat(length)}😀${rest}😀`;
        const pieces = [...piecesOf(text)];
        expect(pieces.join("")).toBe(text);
        expect(pieces.every((piece) => piece.isWellFormed() && piece.length <= PIECE_LENGTH)).toBe(true);
      }),
      { numRuns: 10 },
    );
  });

  it("are sent only for outputs over the inline limit", () => {
    const limits = { inline: 100, most: 1_000 };
    const ok = (output: never) => ({ kind: "success", output, skip: [] }) as const;
    for (const output of [undefined, 1, null, "x".repeat(98), ["x".repeat(96)]]) {
      const outcome = ok(output as never);
      expect(sizeUp(outcome, limits)).toEqual({ outcome, text: null });
    }
    expect(sizeUp(ok("\n".repeat(50) as never), limits).text).toHaveLength(102);
    expect(sizeUp({ ok: true }, limits)).toEqual({ outcome: { ok: true }, text: null });
  });
});
