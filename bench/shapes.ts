/**
 * The measured DAG files. Limits that an author raises for a wide run (concurrent tasks, concurrent runs) are raised;
 * everything else has its default.
 */

export function chainFile(dagId: string, tasks: number): string {
  return file(
    dagId,
    "maxActiveRuns: 1000",
    `let last = d.task("t0", {}, () => {});
  for (let n = 1; n < ${tasks}; n++) last = d.task(\`t\${n}\`, { after: last }, () => {});`,
  );
}

export function fanFile(dagId: string, width: number): string {
  return file(
    dagId,
    "maxActiveTasks: 100_000",
    `const first = d.task("first", {}, () => {});
  const wide = Array.from({ length: ${width} }, (_, n) => d.task(\`t\${n}\`, { after: first }, () => {}));
  d.task("last", { after: wide }, () => {});`,
  );
}

export function independentFile(dagId: string, tasks: number): string {
  return file(
    dagId,
    "maxActiveTasks: 100_000",
    `for (let n = 0; n < ${tasks}; n++) d.task(\`t\${n}\`, {}, () => {});`,
  );
}

/** A typical small file: a few tasks, data edges, a schedule. */
export function smallFile(dagId: string): string {
  return `import { cron, dag } from "tradewind";

export default dag("${dagId}", { schedule: cron("0 2 * * *"), start: "2090-01-01", tags: ["bench"], owner: "data" }, (d) => {
  const rows = d.task("extract", { retries: 2 }, () => [1, 2, 3]);
  const total = d.task("sum", { inputs: { rows } }, ({ rows }) => rows.reduce((sum, row) => sum + row, 0));
  d.task("report", { inputs: { total } }, ({ total }) => \`\${total} in all\`);
});
`;
}

/** Fails at once and waits for its next try for longer than any measurement. */
export function waitingFile(dagId: string, tasks: number): string {
  return `import { dag, once } from "tradewind";

export default dag("${dagId}", { schedule: once(), maxActiveTasks: 1000 }, (d) => {
  for (let n = 0; n < ${tasks}; n++)
    d.task(\`t\${n}\`, { retries: 1, retryDelay: "10h" }, () => { throw new Error("not yet"); });
});
`;
}

function file(dagId: string, options: string, body: string): string {
  return `import { dag } from "tradewind";

export default dag("${dagId}", { ${options} }, (d) => {
  ${body}
});
`;
}
