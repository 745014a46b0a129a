/** (d) Logs of 1, 8 and 50 MB: opening at the end, reading anywhere, and searching the whole. */
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Page } from "../../../packages/web/test/support/browser.ts";
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import type { SuiteOptions } from "../../suite.ts";
import { addRuns } from "../history.ts";
import type { Stage } from "../stage.ts";
import { type Trace, traced } from "../trace.ts";

const LOG_DAG = "logs";
/** One task for each. */
const SIZES = [
  { task: "log_1", mb: 1, atMost: 300 },
  { task: "log_8", mb: 8, atMost: 1_000 },
  { task: "log_50", mb: 50, atMost: 1_000 },
] as const;

export const LOG_FILE = `import { dag } from "tradewind";

export default dag("${LOG_DAG}", {}, (d) => {
  for (const name of ${JSON.stringify(SIZES.map(({ task }) => task))}) d.task(name, {}, () => {});
});
`;

const LINES = `document.querySelectorAll("[data-line]")`;
const NEEDLE = "checksum mismatch";

export async function logs(stage: Stage, { quick }: SuiteOptions): Promise<Figure[]> {
  await addRuns(stage.database, LOG_DAG, { runs: 1 });
  for (const { mb, task } of SIZES) await writeLog(stage, task, mb * 2 ** 20);
  const rounds = quick ? 3 : 15;
  const figures: Figure[] = [];
  for (const size of SIZES) figures.push(...(await opening(stage, { ...size, rounds })));
  await stage.visit(`/dags/${LOG_DAG}/runs/r1/tasks/log_50`, async (page) => {
    await page.locator("[data-line]").first().waitFor();
    figures.push(...(await browsing(stage, page)), ...(await searching(stage, page, rounds)));
  });
  return figures;
}

const ATTEMPT = adhoc(
  `SELECT t.dag_run_id, t.try_number, t.attempt FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id
   WHERE r.dag_id = $1 AND t.task_id = $2`,
);

/** Where the engine would have written it. One line in 2,000 contains the needle. */
async function writeLog(stage: Stage, task: string, bytes: number): Promise<void> {
  const row = await stage.database.one<{ dag_run_id: number; try_number: number; attempt: string }>(ATTEMPT, [
    LOG_DAG,
    task,
  ]);
  if (row === undefined) throw new Error(`${task} has no instance`);
  const name = `${row.try_number}-${row.attempt}.log`;
  const path = join(stage.server.home, "logs", LOG_DAG, `${row.dag_run_id}`, task, "-1", name);
  await mkdir(dirname(path), { recursive: true });
  const file = await open(path, "w");
  const began = Date.now() - 3_600_000;
  let written = 0;
  for (let line = 0; written < bytes; ) {
    const part: string[] = [];
    for (let n = 0; n < 2_000; n++, line++) {
      const level = line % 500 === 7 ? "error" : line % 40 === 3 ? "warn" : "info";
      const text = line % 2_000 === 999 ? `${NEEDLE} in part ${line}` : `part ${line} of the table is loaded`;
      part.push(
        `${JSON.stringify({ t: new Date(began + line).toISOString(), level, source: "stdout", message: `\u001b[32m[loader]\u001b[0m ${text}, ${(line * 7919) % 100_003} rows in ${line % 97} ms` })}\n`,
      );
    }
    const text = part.join("");
    await file.write(text);
    written += text.length;
  }
  await file.close();
}

async function opening(
  stage: Stage,
  { atMost, mb, rounds, task }: { task: string; mb: number; atMost: number; rounds: number },
): Promise<Figure[]> {
  const traces: Trace[] = [];
  await stage.visit(`/dags/${LOG_DAG}/runs/r1?tab=tasks`, async (page) => {
    for (let n = 0; n <= rounds; n++) {
      const link = page.getByRole("link", { name: task, exact: true });
      await link.waitFor();
      await link.hover();
      await sleep(500);
      const trace = await traced(stage, page, async () => {
        await link.click();
        await page.evaluate(`globalThis.bench.shown(() => ${LINES}.length > 10)`);
        await sleep(100);
      });
      // The first one also loads the code of the page.
      if (n > 0) traces.push(trace);
      await page.goBack();
    }
  });
  const times = traces.map((trace) => trace.sinceClick());
  const longest = traces.map((trace) => trace.longest(trace.dispatched("click")[0]));
  return [
    {
      scenario: "d",
      what: `log of ${mb} MB: open at its end, p95`,
      value: quantile(times, 0.95),
      unit: "ms",
      bar: { atMost },
      note: `p50 ${digits(median(times))} ms, from the click to the paint`,
    },
    {
      scenario: "d",
      what: `log of ${mb} MB: longest task of the main thread, p95`,
      value: quantile(longest, 0.95),
      unit: "ms",
      bar: { atMost: 50 },
      note: `p50 ${digits(median(longest))} ms`,
    },
  ];
}

/** To random places and through the lines there. */
async function browsing(stage: Stage, page: Page): Promise<Figure[]> {
  const trace = await traced(
    stage,
    page,
    async () => {
      await page.evaluate(`(async () => {
        const list = ${LINES}[0].closest(".overflow-auto");
        const frame = () => new Promise(requestAnimationFrame);
        for (let jump = 0; jump < 10; jump++) {
          performance.mark("jump");
          list.scrollTop = list.scrollHeight * ((jump * 37) % 100) / 100;
          for (let n = 0; n < 3; n++) await frame();
          while (![...${LINES}].some((line) => /loaded/.test(line.textContent))) await frame();
          await frame();
          performance.mark("arrived");
          for (let step = 0; step < 30; step++) {
            await frame();
            performance.mark("step");
            list.scrollTop += 100;
          }
        }
      })()`);
    },
    "step",
  );
  const [jumps, arrivals, steps] = ["jump", "arrived", "step"].map((name) => trace.marks(name));
  const jumped = (jumps ?? []).map((at, n) => (arrivals?.[n] ?? 0) - at);
  const work = (steps ?? []).slice(1).map((at, n) => trace.busy(steps?.[n] ?? at, at));
  return [
    {
      scenario: "d",
      what: "log of 50 MB: jump to any line, p95",
      value: quantile(jumped, 0.95),
      unit: "ms",
      bar: { atMost: 300 },
      note: `p50 ${digits(median(jumped))} ms, until its text is painted`,
    },
    {
      scenario: "d",
      what: "log of 50 MB: scroll by 100 px, main thread per frame, p95",
      value: quantile(work, 0.95),
      unit: "ms",
      bar: { atMost: 16 },
      note: `p50 ${digits(median(work))} ms`,
    },
  ];
}

async function searching(stage: Stage, page: Page, rounds: number): Promise<Figure[]> {
  const times: number[] = [];
  const search = page.getByRole("searchbox", { name: "Search in the whole log" });
  for (let n = 0; n < rounds; n++) {
    await search.fill("");
    await sleep(400);
    const trace = await traced(stage, page, async () => {
      await page.evaluate('performance.mark("typed")');
      await search.fill(NEEDLE);
      await page.evaluate(
        `globalThis.bench.shown(() => /^(\\d+ of )?\\d/.test(document.querySelector('main [role="status"]')?.textContent ?? ""))`,
      );
    });
    times.push((trace.marks("shown").at(-1) ?? 0) - (trace.marks("typed")[0] ?? 0));
  }
  const path = `/ui/dags/${LOG_DAG}/runs/r1/task-instances/log_50/log`;
  const tries = (await stage.database.one<{ try_number: number }>(ATTEMPT, [LOG_DAG, "log_50"]))?.try_number;
  const answers: number[] = [];
  for (let n = 0; n < rounds; n++)
    answers.push((await stage.get(`${path}/${tries}/search?q=${encodeURIComponent(NEEDLE)}`)).ms);
  return [
    {
      scenario: "d",
      what: "log of 50 MB: search, answer of the server, p95",
      value: quantile(answers, 0.95),
      unit: "ms",
      bar: { atMost: 300 },
      note: `p50 ${digits(median(answers))} ms`,
    },
    {
      scenario: "d",
      what: "log of 50 MB: search, from the last key to the paint, p95",
      value: quantile(times, 0.95),
      unit: "ms",
      bar: { atMost: 300 },
      note: `p50 ${digits(median(times))} ms, of which 100 ms wait for another key`,
    },
  ];
}
