/** The DAGs of the measured pages. Their runs are inserted, unless a scenario needs real ones. */

/** As in a large pipeline: ten tasks per layer, each after one of the layer before it, a fifth of them after two. */
export function layeredFile(dagId: string, tasks: number): string {
  return `import { dag } from "tradewind";

export default dag("${dagId}", {}, (d) => {
  const made = [];
  for (let n = 0; n < ${tasks}; n++) {
    const after = n < 10 ? [] : [made[n - 10]];
    if (n >= 20 && n % 5 === 0) after.push(made[n - 11 - (n % 7)]);
    made.push(d.task(\`step_\${n}_of_the_pipeline\`, { after }, () => {}));
  }
});
`;
}

/** Each task takes a moment, so that each of its states can be seen. */
export function slowFile(dagId: string, tasks: number): string {
  return `import { setTimeout as sleep } from "node:timers/promises";
import { dag } from "tradewind";

export default dag("${dagId}", {}, (d) => {
  let last = d.task("t0", {}, () => sleep(300));
  for (let n = 1; n < ${tasks}; n++) last = d.task(\`t\${n}\`, { after: last }, () => sleep(300));
});
`;
}
