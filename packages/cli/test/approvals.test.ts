/** `approvals`, and `tasks why` of one, against a real server with rows written by the test. */
import { APPROVAL_KIND, type ApprovalRequest } from "@tradewind/sdk/approval-request";
import type { ApprovalManifest } from "@tradewind/sdk/manifest";
import { beforeAll, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { addTrigger, addWait } from "../../engine/test/api/waits.ts";
import { EXIT } from "../src/exit-code.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];
const ids: Record<string, number> = {};

const schema = {
  type: "object",
  properties: { region: { enum: ["eu", "us"] } },
  required: ["region"],
  additionalProperties: false,
};
const approval: ApprovalManifest = { form: null, onReject: "skip", onTimeout: "fail", timeoutMs: null };

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
  await server.addDag(
    manifestOf("release", [
      { taskId: "ok", operator: "approval", approval },
      { taskId: "no", operator: "approval", approval: { ...approval, onReject: "fail" } },
      {
        taskId: "where",
        operator: "approval",
        approval: { ...approval, form: { schema }, onTimeout: "skip" },
      },
    ]),
  );
  const run = await server.addRun("release", { runId: "r1" });
  const timeoutAt = new Date("2099-01-01T00:00:00Z");
  const add = async (taskId: string, request: Partial<ApprovalRequest>, timeout?: Date) => {
    const kwargs = { title: taskId, message: null, assignees: [], problem: null, ...request };
    const { message: _, ...args } = kwargs;
    const id = await addTrigger(server, { kind: APPROVAL_KIND, args, wakeAt: timeoutAt });
    await server.sql("UPDATE trigger SET wake_at = 'infinity' WHERE id = $1", [id]);
    const wait = { dagRunId: run, taskId, triggerId: id, kind: APPROVAL_KIND, kwargs };
    await addWait(server, { ...wait, ...(timeout && { timeoutAt: timeout }) });
    ids[taskId] = id;
  };
  await add("ok", { title: "Publish?", message: "**12** rows" });
  await add("no", { assignees: ["admin", "bo"] });
  await add("where", { title: "Where to?", assignees: ["admin"] }, timeoutAt);
});

it("lists open approvals, by assignee and state", async () => {
  const { code, stdout } = await tw("approvals", "list");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ *ID +DAG +RUN +TASK +TITLE +STATE +SINCE +UNTIL +WHO$/m);
  expect(stdout).toMatch(new RegExp(`^ *${ids.ok} +release +r1 +ok +Publish\\? +open +.* +anyone$`, "m"));
  const mine = JSON.parse((await tw("approvals", "list", "--assignee", "bo", "--json")).stdout);
  expect(mine.map(({ id }: { id: number }) => id)).toEqual([ids.no]);
  expect((await tw("approvals", "list", "--state", "answered")).stderr).toContain("No approvals match.");
  expect((await tw("approvals", "list", "--dag", "missing")).code).toBe(EXIT.notFound);
});

it("shows the question and how to answer", async () => {
  const { stdout } = await tw("approvals", "show", `${ids.where}`);
  expect(stdout).toMatch(/^title +Where to\?$/m);
  expect(stdout).toMatch(/^who +admin$/m);
  expect(stdout).toMatch(/^until +2099-01-01 .*, then: skip$/m);
  expect(stdout).toMatch(/^form +\{"type":"object"/m);
  expect(stdout).toContain(`tradewind approvals answer ${ids.where} --answer '<json>', or --reject`);
  expect((await tw("approvals", "show", "999999")).code).toBe(EXIT.notFound);
});

it("explains a waiting approval", async () => {
  const ok = (await tw("tasks", "why", "release", "r1", "ok")).stdout;
  expect(ok).toContain('it waits for an answer to "Publish?" from any user since');
  expect(ok).toContain(`tradewind approvals answer ${ids.ok} --approve (or --reject)`);
  expect(ok).toContain("[NEEDS_APPROVAL]");
  const where = (await tw("tasks", "why", "release", "r1", "where")).stdout;
  expect(where).toMatch(/from admin since .*, until 2099-01-01.*, after which the task will skip/);
  expect(where).toContain(`approvals answer ${ids.where} --answer`);
});

it("names each invalid field once, and nothing is stored", async () => {
  const given = (...args: string[]) => tw("approvals", "answer", `${ids.where}`, ...args);
  const wrong = await given("--answer", '{"region":"asia"}');
  expect(wrong.code).toBe(2);
  expect(wrong.stderr.match(/must be/g)).toHaveLength(1);
  expect(wrong.stderr).toContain("answer.region");
  expect((await given()).stderr).toContain("give --approve, --answer <json> or --reject.");
  expect((await given("--answer", "{")).stderr).toContain("--answer is not valid JSON");
  expect((await given("--approve", "--reject")).code).toBe(2);
  expect((await given("--approve")).stderr).toContain("Field required");
});

it("answers, and says who was first", async () => {
  const done = await tw("approvals", "answer", `${ids.ok}`, "--approve", "--comment", "fine");
  expect(done).toMatchObject({ code: 0, stderr: "Approved: Publish? (ok of run r1).\n" });
  const again = await tw("approvals", "answer", `${ids.ok}`, "--reject");
  expect(again.code).toBe(EXIT.conflict);
  expect(again.stderr).toMatch(/was answered by "admin" at/);
  expect((await tw("approvals", "answer", `${ids.no}`, "--reject")).stderr).toMatch(/^Rejected: no /);
  const where = await tw("approvals", "answer", `${ids.where}`, "--answer", '{"region":"eu"}', "--json");
  expect(JSON.parse(where.stdout)).toMatchObject({ state: "answered", answer: { region: "eu" } });
  const all = (await tw("approvals", "list", "--all")).stdout;
  expect(all).toMatch(/ok +Publish\? +approved .* admin$/m);
  expect(all).toMatch(/no +no +rejected .* admin$/m);
});
