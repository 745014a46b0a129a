import { expect, it } from "vitest";
import { gridRows } from "./grid-rows.ts";

const task = (task_id: string, group: string | null = null) => ({
  ...{ task_id, group, operator: "task", is_mapped: false, role: "work" as const },
});
const group = (group_id: string, parent: string | null = null) => ({ group_id, parent, is_mapped: false });
const tree = {
  tasks: [task("start"), task("etl.in.read", "etl.in"), task("etl.load", "etl"), task("end")],
  groups: [group("etl"), group("etl.in", "etl")],
  removed: ["old"],
};
const shown = (collapsed: string[] = [], text = "") =>
  gridRows(tree, { collapsed: new Set(collapsed), text }).map(
    ({ depth, kind, label }) => `${" ".repeat(depth)}${label}${kind === "group" ? "/" : ""}`,
  );

it("shows groups where their first task is, with names without the group's", () => {
  expect(shown()).toEqual(["start", "etl/", " in/", "  read", " load", "end", "old"]);
});

it("hides what is in a collapsed group", () => {
  expect(shown(["etl.in"])).toEqual(["start", "etl/", " in/", " load", "end", "old"]);
  expect(shown(["etl"])).toEqual(["start", "etl/", "end", "old"]);
});

it("knows all tasks of a group, also those that are not shown", () => {
  const rows = gridRows(tree, { collapsed: new Set(["etl.in"]), text: "" });
  expect(rows.find(({ id }) => id === "etl")).toMatchObject({ places: [1, 2], isOpen: true });
});

it("opens groups that contain a task that is searched for", () => {
  expect(shown(["etl"], "READ")).toEqual(["etl/", " in/", "  read"]);
});
