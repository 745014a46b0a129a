/** Text of authors that would run as code if a page used it as HTML. */
import { dag, once } from "tradewind";

const HOSTILE = `<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>`;

export default dag(
  "hostile",
  { schedule: once(), description: HOSTILE, owner: HOSTILE, tags: ["<b>bold</b>"] },
  (d) => {
    const told = d.task("tell", (_, ctx) => {
      ctx.log.info(HOSTILE);
      ctx.log.info(
        "\u001b[31mred\u001b[0m and \u001b]8;;javascript:globalThis.hacked=1\u0007a link\u001b]8;;\u0007",
      );
      return { [HOSTILE]: HOSTILE };
    });
    d.task("fail", { after: told }, () => {
      throw new Error(HOSTILE);
    });
  },
);
