/** Source of two DAGs: "held" waits for the file "gate"; the callback of "told" takes a while and writes the file "told". */
export const gatedDags = (root: string) => `
  import { existsSync, writeFileSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { dag } from "tradewind";
  const gate = async () => { while (!existsSync(${JSON.stringify(`${root}/gate`)})) await sleep(20); };
  export const held = dag("held", { maxActiveRuns: 100 }, (d) => { d.task("t", gate); });
  export const told = dag("told", { onSuccess: async () => {
    await sleep(1_500);
    writeFileSync(${JSON.stringify(`${root}/told`)}, "");
  } }, (d) => { d.task("t", () => 1); });
`;
