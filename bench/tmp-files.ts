const chain = (id: string, n: number, o = "") => `import { dag } from "tradewind";
export default dag("${id}", {${o}}, (d) => { let last: any = null; for (let i = 0; i < ${n}; i++) last = d.task("t" + i, last ? { after: last } : {}, () => {}); });`;
const fan = (id: string, n: number) => `import { dag } from "tradewind";
export default dag("${id}", { maxActiveTasks: 100000 }, (d) => { const a = d.task("a", {}, () => {}); const xs = []; for (let i = 0; i < ${n}; i++) xs.push(d.task("t" + i, {after: a}, () => {})); d.task("z", { after: xs }, () => {}); });`;
const ind = (id: string, n: number) => `import { dag } from "tradewind";
export default dag("${id}", { maxActiveTasks: 100000 }, (d) => { for (let i = 0; i < ${n}; i++) d.task("t" + i, {}, () => {}); });`;
export const files = {
  "chain.ts": chain("chain", 100),
  "ten.ts": chain("ten", 10, "maxActiveRuns: 1000"),
  "fan.ts": fan("fan", 1000),
  "ind.ts": ind("ind", 10000),
};
