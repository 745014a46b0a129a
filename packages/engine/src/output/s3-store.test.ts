import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";
import { s3Server, type TestS3Server } from "../../test/support/s3-server.ts";
import { LargeValue, type OutputReference } from "../model/index.ts";
import { LargeOutputs } from "./large-outputs.ts";

const PLACE = { dagId: "d", runId: 4, taskId: "t", mapIndex: -1 };

describe("large outputs in a bucket", () => {
  let server: TestS3Server;
  let folder: string;
  let outputs: LargeOutputs;
  let restore: () => void;

  beforeAll(async () => {
    server = await s3Server(["outputs"]);
    folder = await mkdtemp(join(tmpdir(), "tradewind-outputs-"));
    restore = server.asEnvironment();
    outputs = open();
  });

  afterAll(async () => {
    await outputs.close();
    restore();
    await rm(folder, { recursive: true, force: true });
  });

  let objects = 0;
  const open = (more: { copiesBytes?: number; store?: string } = {}) =>
    new LargeOutputs({
      store: "s3://outputs/in/here",
      folder,
      limits: { inline: 10, most: 10_000_000 },
      register: ({ attempt, mapIndex, runId, taskId, ...facts }) =>
        Promise.resolve({ id: ++objects, ...facts }),
      ...more,
    });

  const kept = async (text: string, attempt: string, by = outputs): Promise<OutputReference> => {
    const draft = by.draft();
    await draft.open();
    for (let at = 0; at < text.length; at += 50_000) await draft.write(text.slice(at, at + 50_000));
    return await by.keep(draft, { ...PLACE, attempt });
  };

  it("are written, found by item, verified, and removed", async () => {
    const list = Array.from({ length: 2_000 }, (_, n) => ({ n, list: [n, `é${n}`], text: "x".repeat(90) }));
    const reference = await kept(JSON.stringify(list), "one");
    expect(reference).toMatchObject({
      store: "s3://outputs/in/here",
      key: "d/4/t/-1/one.json",
      items: 2_000,
    });
    const whole = new LargeValue(reference);
    expect(await outputs.read(whole)).toEqual(list);
    for (const index of [0, 1, 999, 1_999])
      expect(await outputs.read(whole.item(index))).toEqual(list[index]);
    expect(await outputs.length(whole.item(3))).toBeNull();
    const nested = new LargeValue(await kept(JSON.stringify([[], [1, [2, "]"]], "x"]), "nested"));
    expect(await outputs.length(nested.item(0))).toBe(0);
    expect(await outputs.length(nested.item(1))).toBe(2);
    expect(await outputs.read(nested.item(1).item(1))).toEqual([2, "]"]);
    await outputs.requireThere(whole);
    await outputs.remove(reference.store, [reference.key, "d/4/t/-1/never.json"]);
    const other = open();
    await expect(other.requireThere(whole)).rejects.toThrow(
      expect.objectContaining({ code: "OUTPUT_MISSING" }),
    );
    await expect(other.read(whole)).rejects.toThrow(
      expect.objectContaining({
        code: "OUTPUT_MISSING",
        message: expect.stringContaining(`s3://outputs/in/here/${reference.key}`),
      }),
    );
    await other.close();
  });

  it("are rejected if they were changed", async () => {
    const reference = await kept('["a","b"]', "changed");
    await server.put("outputs", `in/here/${reference.key}`, '["a","c"]');
    await expect(outputs.read(new LargeValue(reference))).rejects.toThrow(
      expect.objectContaining({ code: "OUTPUT_DAMAGED" }),
    );
    await server.put("outputs", `in/here/${reference.key}`, '["a","b"]');
    expect(await outputs.read(new LargeValue(reference))).toEqual(["a", "b"]);
  });

  it("are fetched once for all readers, and kept on disk only up to a limit", async () => {
    const bounded = open({ copiesBytes: 5_000 });
    const references = [];
    for (const name of ["a", "b", "c"]) references.push(await kept(JSON.stringify(name.repeat(3_000)), name));
    const [a] = references;
    const many = await Promise.all(Array.from({ length: 20 }, () => bounded.read(new LargeValue(a!))));
    expect(new Set(many)).toEqual(new Set(["a".repeat(3_000)]));
    for (const reference of references) await bounded.read(new LargeValue(reference));
    const copies = async () => {
      const scratch = join(folder, ".scratch");
      const folders = await readdir(scratch).catch(() => []);
      const files = await Promise.all(folders.map((name) => readdir(join(scratch, name)).catch(() => [])));
      return files.flat().length;
    };
    await expect.poll(async () => (await copies()) <= 4).toBe(true);
    await bounded.close();
  });

  it("wait for a store that is briefly unavailable", async () => {
    await server.down();
    const writing = kept('"late"', "late");
    await server.up();
    expect(await outputs.read(new LargeValue(await writing))).toBe("late");
  });

  it("do not delay the cancellation of a task that waits for them", async () => {
    const value = new LargeValue(await kept('"x"', "awaited"));
    const other = open();
    await using under = await ExecutorUnderTest.start({ outputs: other, parallelism: 1 });
    await server.down();
    const inputs = { x: { state: "success", value: null } } as const;
    const large = [{ at: ["call", "inputs", "x", "value"], value }];
    const { id: attempt } = under.submit("echo", { inputs, large });
    await under.event((event) => event.type === "started" && event.attempt === attempt);
    under.executor.cancel(attempt, "enough");
    expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
    expect(await under.run("noop")).toMatchObject({ kind: "success" });
    await server.up();
  });

  it("report why they cannot be stored", async () => {
    const elsewhere = open({ store: "s3://nowhere/x" });
    await expect(kept('"lost"', "lost", elsewhere)).rejects.toThrow(
      expect.objectContaining({
        code: "OUTPUT_NOT_STORED",
        message: expect.stringMatching(/\(6 bytes\) could not be stored in s3:\/\/nowhere\/x: .*bucket/),
      }),
    );
    await expect(elsewhere.probe()).rejects.toThrow(/bucket/);
    await outputs.probe();
    await elsewhere.close();
  });
});
