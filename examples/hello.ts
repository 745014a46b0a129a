import { dag, once } from "tradewind";

export default dag("hello", { schedule: once() }, (d) => {
  const name = d.task("who", () => "world");
  const text = d.task("greet", { inputs: { name }, retries: 2 }, ({ name }, ctx) => {
    ctx.log.info(`greeting ${name}`);
    return `Hello, ${name}!`;
  });
  d.task("shout", { inputs: { text } }, ({ text }) => text.toUpperCase());
});
