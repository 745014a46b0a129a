import { describe, expect, expectTypeOf, test } from "vitest";
import {
  cross,
  type DagBuilder,
  dag,
  type Mapped,
  Operator,
  type Output,
  type Settled,
  signal,
  start,
  zip,
} from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

function manifestOf(build: (d: DagBuilder) => void) {
  return dag("mapped", build)[PROGRAM].describe();
}

function refused(build: (d: DagBuilder) => void): string {
  try {
    manifestOf(build);
  } catch (error) {
    const { code, message } = error as Error & { code: string };
    return `${code}: ${message}`;
  }
  return "accepted";
}

class Copy extends Operator<{ readonly from: string }, number> {
  execute() {
    return this.args.from.length;
  }
}

describe("the manifest", () => {
  test("is unchanged for a DAG without maps", () => {
    const manifest = manifestOf((d) => void d.task("a", () => 1));
    expect(manifest).not.toHaveProperty("maps");
    expect(manifest.tasks[0]).not.toHaveProperty("map");
  });

  test("names each map, its source and its tasks", () => {
    const manifest = manifestOf((d) => {
      const list = d.task("list", () => [1, 2]);
      const twice = d.map("twice", { over: list, limit: 3 }, (n) => n * 2);
      d.mapGroup("each", { over: zip(twice, ["a", "b"]), limit: 2 }, (g, pair) => {
        const text = g.task("text", { inputs: { pair } }, ({ pair: [n, name] }) => [name, `${n}`]);
        return g.mapOperator("copy", { over: text }, (from) => new Copy({ from }));
      });
    });
    expect(manifest.maps).toEqual([
      { mapId: "twice", parent: null, over: { kind: "output", taskId: "list" }, limit: null },
      {
        mapId: "each",
        parent: null,
        over: {
          kind: "zip",
          of: [
            { kind: "output", taskId: "twice" },
            { kind: "list", items: ["a", "b"] },
          ],
        },
        limit: 2,
      },
      { mapId: "each.copy", parent: "each", over: { kind: "output", taskId: "each.text" }, limit: null },
    ]);
    const tasks = Object.fromEntries(manifest.tasks.map((task) => [task.taskId, task]));
    expect(tasks["twice"]).toMatchObject({
      map: "twice",
      upstream: ["list"],
      inputs: { item: { item: "twice" } },
      maxActivePerRun: 3,
    });
    expect(tasks["each.text"]).toMatchObject({ map: "each", upstream: ["twice"], group: "each" });
    expect(tasks["each.copy"]).toMatchObject({ map: "each.copy", operator: "Operator" });
  });
});

describe("invalid maps", () => {
  test("rejects an output of one item outside of its map", () => {
    let leaked: Output<number> | undefined;
    const message = refused((d) => {
      d.mapGroup("each", { over: [1] }, (g, n) => {
        leaked = g.task("inner", { inputs: { n } }, ({ n }) => n);
      });
      d.task("outer", { inputs: { leaked: leaked! } }, ({ leaked }) => leaked);
    });
    expect(message).toMatch(/^TW_MAP_HANDLE: .*task "outer": input "leaked": "each.inner" is of one item/);
  });

  test("rejects a source that is not a list, or not JSON", () => {
    const over = (list: unknown) => refused((d) => void d.map("m", { over: list as number[] }, (n) => n));
    expect(over(7)).toMatch(/TW_BAD_HANDLE|TW_BAD_OPTION/);
    expect(over([new Date(0)])).toMatch(/^TW_BAD_OPTION: .*over\[0\] is a Date/);
    expect(over(undefined)).toMatch(/^TW_BAD_/);
    expect(over([1])).toBe("accepted");
  });

  test("rejects signal rules inside a map", () => {
    const go = signal("go");
    const message = refused((d) => void d.map("m", { over: [1], on: start(go) }, (n) => n));
    expect(message).toMatch(/^TW_BAD_OPTION: .*a task in a map takes no on/);
    const waits = refused((d) => {
      const m = d.map("m", { over: [1] }, (n) => n);
      d.task("t", { on: start(m) }, () => 1);
    });
    expect(waits).toMatch(/on waits for "m", which runs once per item/);
  });

  test("rejects an input with the name of the item", () => {
    const message = refused((d) => {
      const item = d.task("x", () => 1);
      d.map("m", { over: [1], inputs: { item } }, (n) => n);
    });
    expect(message).toMatch(/cannot be named "item"/);
  });
});

test("infers the item from the list, and the output list from the items", () => {
  manifestOf((d) => {
    const list = d.task("list", () => [{ id: 1, name: "a" }]);
    const names = d.map("names", { over: list }, (item, _inputs, ctx) => {
      expectTypeOf(item).toEqualTypeOf<{ id: number; name: string }>();
      expectTypeOf(ctx.mapIndex).toEqualTypeOf<number>();
      return item.name;
    });
    expectTypeOf(names).toEqualTypeOf<Mapped<string>>();
    d.map("pairs", { over: cross(list, [true]) }, ([row, flag]) => {
      expectTypeOf(row.id).toEqualTypeOf<number>();
      expectTypeOf(flag).toEqualTypeOf<true>();
      return 1;
    });
    d.task("all", { inputs: { names } }, ({ names }) => {
      expectTypeOf(names).toEqualTypeOf<readonly string[]>();
    });
    d.task("some", { inputs: { names }, rule: "allDone" }, ({ names }) => {
      expectTypeOf(names).toEqualTypeOf<readonly Settled<string>[]>();
    });
    const group = d.mapGroup("group", { over: list }, (g, row) => {
      const id = g.task("id", { inputs: { row } }, ({ row }) => row.id);
      const inner = g.map("inner", { over: ["x"] }, (x) => x);
      return { id, inner, note: "kept" };
    });
    expectTypeOf(group.result.id).toEqualTypeOf<Mapped<number>>();
    expectTypeOf(group.result.inner).toEqualTypeOf<Mapped<readonly "x"[]>>();
    // @ts-expect-error A Date is no JSON.
    d.map("bad", { over: list }, () => new Date());
    // @ts-expect-error A number is no list.
    expect(() => d.map("worse", { over: d.task("n", () => 1) }, (n) => n)).not.toThrow();
  });
});
