/** The audit log from the command line, against a real standalone. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

interface AuditEvent {
  readonly event_log_id: number;
  readonly event: string;
  readonly owner: string;
  readonly when: string;
}

let standalone: StandaloneProcess;
const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
const events = async (...argv: string[]) =>
  JSON.parse((await tw("events", "list", ...argv, "--json")).stdout) as AuditEvent[];
const names = async (...argv: string[]) => (await events(...argv)).map(({ event }) => event);

beforeAll(async () => {
  standalone = await StandaloneProcess.startWith(["hello.ts"], []);
  await standalone.until(/DAGs? loaded:.*hello/);
  await tw("dags", "pause", "hello");
  await tw("dags", "trigger", "hello", "--run-id", "mine");
  await tw("variables", "set", "region", "eu");
  const TRADEWIND_TOKEN = (await tw("tokens", "create", "ci")).stdout.trim();
  await runCaptured(["variables", "set", "region", "us"], {
    env: { TRADEWIND_HOME: standalone.home, TRADEWIND_TOKEN },
  });
}, 120_000);
afterAll(() => standalone?.remove());

it("lists events, newest first", async () => {
  const all = await names();
  expect(all).toEqual([
    "patch_variable",
    "create_token",
    "create_variable",
    "trigger_dag_run",
    "pause_dag",
    "create_sign_in_link",
  ]);
  const { stdout } = await tw("events", "list", "--limit", "2");
  expect(stdout).toMatch(/^ID +WHEN +USER +EVENT .*\n.* ci +patch_variable .*\{"key":"region"\}\n/);
});

it("filters by DAG, run, user, event and time", async () => {
  expect(await names("--dag", "hello")).toEqual(["trigger_dag_run", "pause_dag"]);
  expect(await names("--dag", "hello", "--run", "mine")).toEqual(["trigger_dag_run"]);
  expect(await names("--user", "ci")).toEqual(["patch_variable"]);
  expect(await names("--event", "pause_dag", "create_token")).toEqual(["create_token", "pause_dag"]);
  const [newest] = await events("--limit", "1");
  const day = newest!.when.slice(0, 10);
  expect(await names("--event", "patch_variable", "--since", day, "--until", day)).toEqual([
    "patch_variable",
  ]);
  expect(await names("--until", "2020-01-31")).toEqual([]);
  expect(await names("--since", "2999-01-01")).toEqual([]);
});

it("shows one event with its details, and reports a missing one", async () => {
  const [event] = await events("--event", "create_variable");
  const { stdout } = await tw("events", "show", String(event!.event_log_id));
  expect(stdout).toMatch(/^event +create_variable$/m);
  expect(stdout).toContain('"key": "region"');
  expect((await tw("events", "show", "99999")).code).toBe(3);
  const missing = await tw("events", "list", "--dag", "helo");
  expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining('did you mean "hello"?')]);
});
