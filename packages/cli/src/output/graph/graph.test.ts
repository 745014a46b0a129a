import { Graphviz } from "@hpcc-js/wasm-graphviz";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Task } from "../../client/resources.ts";
import { dagGraph, type GraphNode } from "./dag-graph.ts";
import { dotText } from "./dot.ts";
import { planLanes } from "./lane-plan.ts";
import { drawLanes } from "./lanes.ts";
import { layOut } from "./layout.ts";
import { mermaidText } from "./mermaid.ts";
import { svgText } from "./svg.ts";
import { taskTable } from "./task-table.ts";

function task(id: string, upstream: readonly string[], more: Partial<Task> = {}): Task {
  return {
    task_id: id,
    operator_name: "task",
    trigger_rule: "all_success",
    retries: 0,
    pool: "default_pool",
    depends_on_past: false,
    downstream_task_ids: [],
    upstream_task_ids: upstream,
    is_mapped: false,
    topological_index: 0,
    task_group_path: [],
    role: "work",
    teardown_of: null,
    ...more,
  };
}

function node(id: string, ...upstream: string[]): GraphNode {
  return { id, kind: "task", isMapped: false, groups: [], upstream, setup: null };
}

const PARTS = { task_group_path: ["parts"] };
const INNER = { task_group_path: ["parts", "parts.end"] };
const SALES: readonly Task[] = [
  task("cluster", [], { role: "setup" }),
  task("extract", ["cluster"]),
  task("size", ["extract"], { operator_name: "branch" }),
  task("parts.split", ["size"], PARTS),
  task("parts.each", ["parts.split"], { ...PARTS, is_mapped: true }),
  task("parts.end.default", ["parts.each"], INNER),
  task("at_once", ["size"]),
  task("load", ["parts.end.default", "at_once", "extract"], { trigger_rule: "one_success" }),
  task("end", ["load"], { pool: "mail" }),
  task("drop", ["load", "cluster"], { role: "teardown", teardown_of: "cluster" }),
].map((each, topological_index) => ({ ...each, topological_index }));

const drawn = (...nodes: GraphNode[]) =>
  drawLanes(nodes, 12)?.flatMap(({ connector, gutter, node: { id } }) => [
    `${gutter} ${id}`,
    ...(connector === null ? [] : [connector]),
  ]);

describe("text graph", () => {
  it("draws a line between the tasks of a chain, and none between independent tasks", () => {
    expect(drawn(node("a"), node("b", "a"), node("c", "b"))).toEqual(["● a", "│", "● b", "│", "● c"]);
    expect(drawn(node("a"), node("b"), node("c"))).toEqual(["● a", "● b", "● c"]);
    expect(drawn(node("a"), node("b", "a"), node("c"))).toEqual(["● c", "● a", "│", "● b"]);
  });

  it("draws a diamond with chains before, in and after it", () => {
    const lines = drawn(
      node("a"),
      node("b", "a"),
      node("c", "b"),
      node("c2", "c"),
      node("d", "b"),
      node("e", "c2", "d"),
      node("f", "e"),
    );
    expect(lines?.map((line) => line.trimEnd())).toEqual([
      "●   a",
      "│",
      "●   b",
      "├▸● c",
      "│ │",
      "│ ● c2",
      "●▸┤ d",
      "  ● e",
      "  │",
      "  ● f",
    ]);
  });

  it("leaves the other columns of a line between two tasks empty", () => {
    const { lines } = taskTable("chain", [task("a", []), task("b", ["a"], { topological_index: 1 })], 80);
    expect(lines.slice(1)).toEqual(["● a   task            0", "│", "● b   task            0"]);
  });

  it("uses two lanes for a fan-out and fan-in of any width", () => {
    const names = Array.from({ length: 30 }, (_, index) => `t${index}`);
    const lines = drawn(node("start"), ...names.map((name) => node(name, "start")), node("end", ...names));
    expect(lines?.slice(0, 3)).toEqual(["●     start", "├▸●─╮ t0", "├▸●▸┤ t1"]);
    expect(lines?.slice(-2)).toEqual(["●──▸┤ t29", "    ● end"]);
  });

  it("shows where an edge arrives: at the task, or at a lane", () => {
    const lines = drawn(node("a"), node("b"), node("x", "a", "b"), node("y", "b", "x"), node("z", "y", "a"));
    expect(lines).toEqual(["●     a", "│ ●   b", "├─┼▸● x", "│ ●◂╯ y", "●◂╯   z"]);
  });

  it("routes every edge along a lane that stays open between its two tasks", () => {
    const graphs = fc.array(fc.array(fc.nat(30), { maxLength: 4 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(graphs, (picks) => {
        const nodes = picks.map((ups, index) =>
          node(`t${index}`, ...new Set(index === 0 ? [] : ups.map((up) => `t${up % index}`))),
        );
        const rows = planLanes(nodes, Number.POSITIVE_INFINITY)!;
        const places = new Map(rows.map(({ node: each }, place) => [each.id, place]));
        expect(places.size).toBe(nodes.length);
        for (const [place, row] of rows.entries()) {
          for (const up of row.node.upstream) {
            const from = places.get(up)!;
            expect(from).toBeLessThan(place);
            const between = rows.slice(from, place);
            const isLed = row.from.some(
              (lane) => rows[from]!.to.includes(lane) && between.every(({ below }) => below[lane]),
            );
            expect(isLed).toBe(true);
          }
        }
      }),
    );
  });

  it("marks branches, setups, teardowns and maps, and explains the marks", () => {
    const { legend, lines } = taskTable("sales", SALES, 80);
    expect(lines[0]).toMatch(/^TASK +OPERATOR +RETRIES +RULE +POOL$/);
    expect(lines.join("\n")).toMatch(/ load +.* oneSuccess/);
    expect(lines.join("\n")).toMatch(/◆.* size +branch/);
    expect(lines.join("\n")).toMatch(/▲.* cluster/);
    expect(lines.join("\n")).toMatch(/▼.* drop/);
    expect(lines.join("\n")).toMatch(/●.* parts\.each\[\]/);
    expect(legend).toBe("◆ chooses what follows   ▲ setup   ▼ teardown   [] once per item of a list");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  });

  it("falls back to levels if there are too many lanes", () => {
    const roots = Array.from({ length: 20 }, (_, index) => task(`r${index}`, []));
    const leaves = Array.from({ length: 20 }, (_, index) =>
      task(`l${index}`, [`r${index}`, `r${(index + 7) % 20}`, `r${(index + 13) % 20}`]),
    );
    const tasks = [...roots, ...leaves].map((each, topological_index) => ({ ...each, topological_index }));
    const { lines } = taskTable("woven", tasks, 80);
    expect(lines[0]).toMatch(/^LEVEL +TASK +AFTER/);
    expect(lines[1]).toMatch(/^ +1 +● r0/);
    expect(lines.at(-1)).toMatch(/^ +2 +● l19 +r19, r6, r12/);
  });
});

describe("graph export", () => {
  const sales = dagGraph("sales", SALES);

  it("writes dot that Graphviz accepts, with all tasks, groups and edges", async () => {
    const graphviz = await Graphviz.load();
    const laidOut = JSON.parse(graphviz.dot(dotText(sales), "json")) as {
      objects: { name: string; label?: string }[];
      edges: { style?: string }[];
    };
    const names = laidOut.objects.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(SALES.map(({ task_id }) => task_id)));
    expect(
      laidOut.objects.filter(({ name }) => name.startsWith("cluster_")).map(({ label }) => label),
    ).toEqual(["parts", "parts.end"]);
    expect(laidOut.edges).toHaveLength(12);
    expect(laidOut.edges.filter(({ style }) => style === "dashed")).toHaveLength(1);
  });

  it("writes Mermaid without keywords as ids, and closes every group", () => {
    const lines = mermaidText(sales).split("\n");
    expect(lines.slice(0, 4)).toEqual(["---", 'title: "sales"', "---", "flowchart LR"]);
    const statement =
      /^ *(?:t\d+(?:\("[\w.\-[\]]+"\)|\{"[\w.\-[\]]+"\}|\[\["[\w.\-[\]]+"\]\]|\[\/"[\w.\-[\]]+"\\\]|\[\\"[\w.\-[\]]+"\/\])|subgraph g\d+\["[\w.-]+"\]|end|t\d+ (?:-->|-\.->) t\d+)$/;
    for (const line of lines.slice(4)) expect(line).toMatch(statement);
    expect(lines.filter((line) => /^ *subgraph /.test(line))).toHaveLength(2);
    expect(lines.filter((line) => /^ *end$/.test(line))).toHaveLength(2);
    expect(lines.filter((line) => line.includes("-->"))).toHaveLength(11);
    expect(lines).toContain("  t0 -.-> t9");
    expect(lines).toContain('    t4[["each[]"]]');
  });

  it("draws each task in its group without overlaps in SVG", async () => {
    const laidOut = await layOut(sales, () => ({ width: 80, height: 34 }));
    const groups = new Map(laidOut.groups.map(({ box, id }) => [id, box]));
    for (const { box, node: each } of laidOut.nodes) {
      for (const group of each.groups) {
        const around = groups.get(group)!;
        expect(box.left >= around.left && box.left + box.width <= around.left + around.width).toBe(true);
        expect(box.top >= around.top && box.top + box.height <= around.top + around.height).toBe(true);
      }
      for (const { box: other, node: another } of laidOut.nodes) {
        const isApart =
          box.left + box.width <= other.left ||
          other.left + other.width <= box.left ||
          box.top + box.height <= other.top ||
          other.top + other.height <= box.top;
        expect(another === each || isApart).toBe(true);
      }
    }
  });

  it("draws no boxes in SVG around groups that depend on each other in both directions", async () => {
    const woven = Array.from({ length: 200 }, (_, index) =>
      task(`g${index % 7}.t${index}`, index < 10 ? [] : [`g${(index - 10) % 7}.t${index - 10}`], {
        task_group_path: [`g${index % 7}`],
        topological_index: index,
      }),
    );
    const svg = await svgText(dagGraph("woven", woven));
    expect(svg).not.toContain('class="group"');
    expect(svg).toContain(">g3.t10</text>");
  });

  it("closes every SVG element and escapes texts", async () => {
    const svg = await svgText(dagGraph("a<b", SALES));
    expect(svg).toContain("<title>a&lt;b</title>");
    const open: string[] = [];
    for (const [, slash, name, empty] of svg.matchAll(/<(\/?)(\w+)[^>]*?(\/?)>/g)) {
      if (slash) expect(open.pop()).toBe(name);
      else if (!empty) open.push(name!);
    }
    expect(open).toEqual([]);
    expect(svg.match(/class="node /g)).toHaveLength(SALES.length);
    expect(svg.match(/class="edge/g)).toHaveLength(12);
    expect(svg).not.toContain("NaN");
  });

  it("draws a DAG with one task or none", async () => {
    const graphviz = await Graphviz.load();
    for (const tasks of [[], [task("only", [])]]) {
      const graph = dagGraph("small", tasks);
      expect(() => graphviz.dot(dotText(graph), "json")).not.toThrow();
      expect(await svgText(graph)).not.toMatch(/NaN|Infinity/);
      expect(taskTable("small", tasks, 80).lines).toHaveLength(tasks.length === 0 ? 0 : 2);
    }
  });
});
