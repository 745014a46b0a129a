/** What an executor does when processes die, stop, or receive something twice. */
import assert from "node:assert/strict";
import type { CaseParts } from "./conformance.ts";
import { ObservedRun } from "./observed-run.ts";
import type { Note } from "./witness.ts";

/** From the death of a worker to the start of its work elsewhere. */
const LOSS_MS = 30_000;

/** A run whose task waits at its gate. */
async function held({
  subject,
  witness,
}: CaseParts): Promise<{ readonly run: ObservedRun; readonly start: Note }> {
  const run = await ObservedRun.start(subject, witness, "conformance_held");
  const start = await witness.note(run.id, "start");
  await witness.waits(start);
  await run.taskIs("held", "running");
  return { run, start };
}

/** The task succeeded in its first try, by this attempt, after this number of starts. */
async function succeeds({ witness }: CaseParts, run: ObservedRun, by: Note, starts: number): Promise<void> {
  await run.ends("success");
  assert.equal(await run.output("after"), by.attempt);
  assert.equal(witness.notes(run.id, "start").length, starts);
  assert.equal((await run.task("held")).try_number, 1);
}

export const LOSS_CASES: Readonly<Record<string, (parts: CaseParts) => Promise<void>>> = {
  "lost: the work of a dead machine starts elsewhere within 30 s, and uses up no try": async (parts) => {
    const { subject, witness } = parts;
    const { run, start } = await held(parts);
    const died = performance.now();
    await subject.killRunner(start.attempt ?? "");
    const next = await witness.note(run.id, "start", 2);
    const took = performance.now() - died;
    assert.ok(took < LOSS_MS, `it started again after ${Math.round(took)} ms`);
    assert.ok(witness.isGone(start), "the first attempt has ended before the second starts");
    assert.equal(next.tryNumber, 1);
    witness.open(run.id);
    await succeeds(parts, run, next, 2);
  },

  "duplicate dispatch: a repeated launch starts nothing twice, during and after the attempt": async (
    parts,
  ) => {
    const { subject, witness } = parts;
    const { run, start } = await held(parts);
    const attempts = [start.attempt ?? ""];
    await subject.launchAgain(attempts);
    await subject.launchAgain(attempts);
    // Another run passes: what was launched again has had its turn.
    const other = await ObservedRun.start(subject, witness, "conformance_example");
    await other.ends("success");
    witness.open(run.id);
    await run.taskIs("held", "success");
    await subject.launchAgain(attempts);
    const last = await ObservedRun.start(subject, witness, "conformance_example");
    await last.ends("success");
    await succeeds(parts, run, start, 1);
  },

  "adoption: a task survives the death of its scheduler, or starts again with the next one": async (
    parts,
  ) => {
    const { subject, witness } = parts;
    const { run, start } = await held(parts);
    await subject.killScheduler();
    if (subject.isRemote) {
      // The next scheduler owns the run when it starts the task behind.
      assert.ok(!witness.isGone(start), "the task was not disturbed");
      witness.open(run.id);
      await succeeds(parts, run, start, 1);
    } else {
      const next = await witness.note(run.id, "start", 2);
      assert.ok(witness.isGone(start), "the first attempt has ended before the second starts");
      witness.open(run.id);
      await succeeds(parts, run, next, 2);
    }
  },

  "drain: a running task may finish when its machine is asked to stop": async (parts) => {
    const { subject, witness } = parts;
    const { run, start } = await held(parts);
    await subject.stopRunner(start.attempt ?? "");
    assert.ok(!witness.isGone(start), "the task goes on");
    witness.open(run.id);
    await succeeds(parts, run, start, 1);
  },

  "drain: a task that does not finish is handed back, and uses up no try": async (parts) => {
    const { subject, witness } = parts;
    const { run, start } = await held(parts);
    await subject.stopRunner(start.attempt ?? "");
    const next = await witness.note(run.id, "start", 2);
    assert.ok(witness.isGone(start), "the first attempt has ended before the second starts");
    witness.open(run.id);
    await succeeds(parts, run, next, 2);
  },
};
