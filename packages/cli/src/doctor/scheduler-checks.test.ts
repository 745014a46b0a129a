import { expect, it } from "vitest";
import { checkServed, judgeSchedulers, type SchedulerJob } from "./scheduler-checks.ts";

it("names DAGs without a live scheduler, and the command that serves them", () => {
  expect([...checkServed({ status: "healthy", unserved_dags: ["sales", "billing"] })]).toEqual([
    {
      name: "scheduler",
      result: "warn",
      says: "no live scheduler serves sales, billing: each scheduler drains, or was started with --dags for other DAGs",
      remedy: "tradewind scheduler --dags sales,billing",
    },
  ]);
  expect([...checkServed({ status: "healthy", unserved_dags: [] })]).toEqual([]);
  expect([...checkServed({ status: "healthy" })]).toEqual([]);
});

const job = (facts: SchedulerJob["facts"], id = 3): SchedulerJob => ({ id, hostname: "a", facts });
const judge = (...jobs: SchedulerJob[]) => [...judgeSchedulers(jobs)];

it("reports nothing while streaming tasks leave ordinary slots free", () => {
  expect(judge(job(null), job({ slots: 4, streaming_slots: 0, streaming_tasks: 2 }))).toEqual([]);
  expect(judge(job({ slots: 1, streaming_slots: 2, streaming_tasks: 2 }))).toEqual([]);
  expect(judge(job({ slots: null, streaming_slots: 0, streaming_tasks: 9 }))).toEqual([]);
});

it("warns when streaming tasks hold all slots of a scheduler, or all but one", () => {
  expect(judge(job({ slots: 4, streaming_slots: 0, streaming_tasks: 4 }))).toMatchObject([
    {
      result: "warn",
      says: "streaming tasks hold 4 of the 4 slots of the scheduler on a (job 3): no other task can run there",
      remedy: "give them separate slots: tradewind scheduler --streaming-slots 4",
    },
  ]);
  expect(judge(job({ slots: 4, streaming_slots: 2, streaming_tasks: 5 }))).toMatchObject([
    { result: "warn", says: expect.stringContaining("hold 3 of the 4 slots") },
  ]);
});

it("reports a draining scheduler, and warns if no other scheduler starts tasks", () => {
  const draining = job({ draining: true, attempts: 2 });
  expect(judge(draining, job(null, 4))).toMatchObject([
    { result: "ok", says: "the scheduler on a (job 3) drains: 2 tasks are still running" },
  ]);
  expect(judge(draining)).toMatchObject([{ result: "warn", remedy: expect.stringContaining("start one") }]);
});
