import { expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addAttempt } from "../../../test/api/remote.ts";
import { waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { adhoc } from "../database/database.ts";
import { reportEnds } from "./reports.ts";

it("reports the end of the assignments that exist, while an owner deletes others", async () => {
  const tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b" }]));
  const dagRunId = await tw.addRun("etl", { runId: "r1" });
  const ended = await addAttempt(tw, { dagRunId, taskId: "a" });
  const lost = await addAttempt(tw, { dagRunId, taskId: "b" });
  let reported: ReturnType<typeof reportEnds> | undefined;
  await tw.database.transaction(async (tx) => {
    await tx.rows(adhoc("DELETE FROM assignment WHERE id = $1"), [ended]);
    const content = { lost: "its command has ended" };
    reported = reportEnds(tw.database, new Map([ended, lost].map((id) => [id, content])));
    await waitingForLock(tw.database);
  });
  expect((await reported!).map(({ id }) => id)).toEqual([lost]);
});
