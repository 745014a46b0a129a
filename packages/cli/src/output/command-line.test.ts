import { expect, test } from "vitest";
import { commandLine, logCommand } from "./command-line.ts";

const failed = { dag_id: "etl", dag_run_id: "manual__2026-11-15T02:00:00.000Z", task_id: "load" };

test("names the log of an instance, with its map index if it has one", () => {
  const session = { options: {} };
  const plain = "tradewind tasks logs etl manual__2026-11-15T02:00:00.000Z load";
  expect(logCommand(session, { ...failed, map_index: -1 })).toBe(plain);
  expect(logCommand(session, { ...failed, map_index: 3 })).toBe(`${plain} --map-index 3`);
});

test("reaches the server of this command", () => {
  expect(commandLine({ options: { home: "my home" } }, "dags", "list")).toBe(
    "tradewind --home 'my home' dags list",
  );
  expect(commandLine({ options: { url: "http://a:1", home: "b" } }, "dags", "list")).toBe(
    "tradewind --url http://a:1 dags list",
  );
});

test("quotes what a shell would change", () => {
  expect(commandLine({ options: {} }, "runs", "show", "it's $HOME")).toBe(
    "tradewind runs show 'it'\\''s $HOME'",
  );
});
