/** What an executor does with tasks while nothing breaks. */
import assert from "node:assert/strict";
import type { CaseParts } from "./conformance.ts";
import { ObservedRun } from "./observed-run.ts";

/** Usually a few milliseconds: a bound for busy machines, below the interval of any sweep. */
const NOTIFIED_MS = 2_000;

export const RUN_CASES: Readonly<Record<string, (parts: CaseParts) => Promise<void>>> = {
  "start: a task is shown as running, with host, process and times": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_held");
    const start = await witness.note(run.id, "start");
    const { hostname, pid, queued_when, start_date, try_number } = await run.taskIs("held", "running");
    assert.ok(hostname, "the host name is shown");
    assert.ok(pid !== null && pid > 0, "the process is shown");
    assert.ok(queued_when !== null && start_date !== null && queued_when <= start_date);
    assert.equal(try_number, 1);
    witness.open(run.id);
    await run.ends("success");
    assert.equal(await run.output("after"), start.attempt);
  },

  "run: the tasks of a DAG run in order, with inputs, outputs, a map and conf": async ({
    subject,
    witness,
  }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_example", { name: "Ada" });
    await run.ends("success");
    assert.deepEqual(await run.output("report"), { sum: 12, name: "Ada" });
    assert.deepEqual(
      witness.notes(run.id, "start").map(({ task }) => task),
      ["extract", "report"],
    );
    const { end_date, start_date } = await run.task("report");
    assert.ok(start_date !== null && end_date !== null && start_date <= end_date);
  },

  "fail: a task that throws is retried, then failed; other ends are distinguished": async ({
    subject,
    witness,
  }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_failing");
    await run.ends("failed");
    const again = await run.task("again");
    assert.deepEqual([again.state, again.try_number], ["failed", 2]);
    assert.match(again.reason ?? "", /failed as it should, try 2/);
    const starts = witness.notes(run.id, "start");
    assert.deepEqual(
      starts.filter(({ task }) => task === "again").map(({ tryNumber }) => tryNumber),
      [1, 2],
    );
    assert.equal(starts.filter(({ task }) => task === "at_once").length, 1);
    assert.equal((await run.task("at_once")).state, "failed");
    assert.equal((await run.task("behind")).state, "upstream_failed");
    assert.equal((await run.task("skipped")).state, "skipped");
    const exit = await run.task("exit");
    assert.equal(exit.state, "failed");
    assert.match(exit.reason ?? "", /TASK_PROCESS_DIED|exit code 3/);
  },

  "cancel: the task of a cancelled run is notified at once, and its process ends": async ({
    subject,
    witness,
  }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_held");
    const start = await witness.note(run.id, "start");
    await witness.waits(start);
    // A task whose start is not stored yet is skipped by the cancel.
    await run.taskIs("held", "running");
    const began = performance.now();
    await run.cancel();
    await witness.gone(start);
    const took = performance.now() - began;
    assert.ok(took < NOTIFIED_MS, `the task was notified after ${Math.round(took)} ms`);
    await run.ends("failed");
    assert.equal((await run.task("held")).state, "failed");
    assert.deepEqual(witness.notes(run.id, "end"), []);
  },

  "cancel: a cleared task is stopped before its next try starts": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_held");
    const first = await witness.note(run.id, "start");
    await witness.waits(first);
    await run.clear("held");
    const second = await witness.note(run.id, "start", 2);
    assert.ok(witness.isGone(first), "the first try has ended before the second starts");
    assert.deepEqual([first.tryNumber, second.tryNumber], [1, 2]);
    witness.open(run.id);
    await run.ends("success");
    assert.equal(await run.output("after"), second.attempt);
  },

  "timeout: a task that takes too long is stopped and failed": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_limited");
    const start = await witness.note(run.id, "start");
    await witness.gone(start);
    const slow = await run.taskIs("slow", "failed");
    assert.match(slow.reason ?? "", /TASK_TIMEOUT|exceeded its timeout of 1s/);
    await run.ends("failed");
  },

  "memory limit: a task that takes too much memory is killed, and others go on": async ({
    subject,
    witness,
  }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_limited");
    await run.ends("failed");
    assert.match((await run.task("greedy")).reason ?? "", /TASK_OUT_OF_MEMORY|its limit is 200 MB/);
    assert.equal((await run.task("modest")).state, "success");
  },

  "log: what a task logs and prints can be read while it runs, in order": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_logged");
    await witness.waits(await witness.note(run.id, "start"));
    const spoken = async () =>
      (await run.log("speak")).filter((line) => /^(first|second|third|fourth)$/.test(line));
    for (const end = performance.now() + 10_000; (await spoken()).length < 3 && performance.now() < end; );
    // The two streams of a process have no common order.
    assert.deepEqual((await spoken()).sort(), ["first", "second", "third"]);
    witness.open(run.id);
    await run.ends("success");
    assert.equal((await spoken()).at(-1), "fourth");
  },

  "defer and resume: a task gives up its process, resumes where it waited, and repeats no step": async ({
    subject,
    witness,
  }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_waiting");
    await run.ends("success");
    const starts = witness.notes(run.id, "start");
    const [resumed, ...others] = witness.notes(run.id, "resumed");
    assert.equal(witness.notes(run.id, "made").length, 1);
    assert.deepEqual(others, []);
    assert.notEqual(resumed?.attempt, starts[0]?.attempt, "it resumes as another attempt");
    assert.deepEqual(new Set([...starts, resumed].map((note) => note?.tryNumber)), new Set([1]));
    assert.equal(await run.output("wait"), 7);
  },

  "large output: an output of 30 MB reaches the next task": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_large");
    await run.ends("success");
    assert.deepEqual(await run.output("read"), { length: 30_000_000, end: "789" });
  },

  "callbacks run once, with the error of the task": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_told");
    await run.ends("failed");
    const note = await witness.note(run.id, "task failed");
    assert.match(String(note.value), /as it should/);
    await witness.note(run.id, "dag failed");
    assert.equal(witness.notes(run.id, "task failed").length, 1);
  },

  "onSignal decides about each signal, and starts the task": async ({ subject, witness }) => {
    const run = await ObservedRun.start(subject, witness, "conformance_judging");
    // A run receives the signals that are sent after its start.
    await run.begins();
    await run.send("conformance/score", "bad");
    await run.send("conformance/score", "good");
    await witness.note(run.id, "judged");
    await run.send("conformance/end", null);
    await run.ends("success");
    assert.equal(witness.notes(run.id, "judged").length, 1);
  },
};
