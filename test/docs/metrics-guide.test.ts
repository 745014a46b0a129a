/** The table and the examples of docs/guides/metrics.md name the metrics that the API serves. */
import { beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { METRICS } from "../../packages/engine/src/api/metrics/installation-metrics.ts";
import { Installation } from "../../packages/engine/test/api/installation.ts";
import { blocksOf, textOf } from "./guide.ts";

const PAGE = "docs/guides/metrics.md";
let served: string[];

beforeAll(async () => {
  const tw = await Installation.open();
  const { body } = await tw.app.inject({ url: "/metrics", headers: { authorization: `Bearer ${tw.token}` } });
  served = [...body.matchAll(/^# TYPE (tradewind_\w+) gauge$/gm)].map(([, name]) => name!);
});

const table = textOf(PAGE).split("## All metrics")[1]?.split("\n## ")[0] ?? "";
const rows = [...table.matchAll(/^\| `(tradewind_\w+)` \|(.*?)\| .+ \|$/gm)];

it("lists the served metrics, in their order", () => {
  expect(served.length).toBeGreaterThan(20);
  expect(rows.map(([, name]) => name)).toEqual(served);
});

it("lists the labels of each metric", () => {
  const labels = new Map(
    rows.map(([, name, text = ""]) => [name, [...text.matchAll(/`(\w+)`/g)].map(([, label]) => label)]),
  );
  for (const { labels: expected, name } of METRICS)
    expect([name, labels.get(name)]).toEqual([name, expected]);
});

it("uses existing metrics in its examples", () => {
  const yaml = blocksOf(PAGE).filter(({ language }) => language === "yaml");
  for (const { text } of yaml) expect(parse(text)).toBeTypeOf("object");
  const used = [...textOf(PAGE).matchAll(/\btradewind_[a-z_]+/g)].map(([name]) => name);
  expect(used.filter((name) => !served.includes(name))).toEqual([]);
});
