import { expect, it } from "vitest";
import { checkServed, judgeSchedulers, type SchedulerJob } from "./scheduler-checks.ts";

it("names DAGs that no live scheduler serves, with the command that does", () => {
  expect([...checkServed({ status: "healthy", unserved_dags: ["sales", "billing"] })]).toEqual([
    {
      name: "scheduler",
      result: "warn",
      says: "no live scheduler serves sales, billing: each one drains, or was started with --dags and other DAGs",
      remedy: "tradewind scheduler --dags sales,billing",
    },
  ]);
  expect([...checkServed({ status: "healthy", unserved_dags: [] })]).toEqual([]);
  expect([...checkServed({ status: "healthy" })]).toEqual([]);
});

const job = (facts: SchedulerJob["facts"], id = 3): SchedulerJob => ({ id, hostname: "a", facts });
const judge = (...jobs: SchedulerJob[]) => [...judgeSchedulers(jobs)];

it("is silent while streaming tasks leave ordinary slots to others", () => {
  expect(judge(job(null), job({ slots: 4, streaming_slots: 0, streaming_tasks: 2 }))).toEqual([]);
  expect(judge(job({ slots: 1, streaming_slots: 2, streaming_tasks: 2 }))).toEqual([]);
  expect(judge(job({ slots: null, streaming_slots: 0, streaming_tasks: 9 }))).toEqual([]);
});

it("warns when streaming tasks hold all slots of a scheduler, or all but one", () => {
  expect(judge(job({ slots: 4, streaming_slots: 0, streaming_tasks: 4 }))).toMatchObject([
    {
      result: "warn",
      says: "streaming tasks hold 4 of the 4 slots of the one on a (job 3): no other task can run there",
      remedy: "give them slots of their own: tradewind scheduler --streaming-slots 4",
    },
  ]);
  expect(judge(job({ slots: 4, streaming_slots: 2, streaming_tasks: 5 }))).toMatchObject([
    { result: "warn", says: expect.stringContaining("hold 3 of the 4 slots") },
  ]);
});

it("tells of a scheduler that drains, and warns when no other starts tasks", () => {
  const draining = job({ draining: true, attempts: 2 });
  expect(judge(draining, job(null, 4))).toMatchObject([
    { result: "ok", says: "the one on a (job 3) drains: 2 tasks are still running" },
  ]);
  expect(judge(draining)).toMatchObject([{ result: "warn", remedy: expect.stringContaining("start one") }]);
});
