import { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import type { Session } from "../../session.ts";
import { cliVersion } from "../../version.ts";

export function command(session: Session) {
  return new Command("version")
    .description("print the versions of tradewind and Node.js")
    .addHelpText("after", examples("tradewind version"))
    .action(async () => {
      const facts = {
        version: cliVersion(),
        node: process.version,
        platform: `${process.platform}-${process.arch}`,
      };
      if (session.format === "table")
        session.terminal.data(`tradewind ${facts.version} (node ${facts.node}, ${facts.platform})`);
      else await session.printObject(facts, []);
    });
}
