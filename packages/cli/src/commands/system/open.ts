import { Command } from "@commander-js/extra-typings";
import { openBrowser } from "../../browser.ts";
import { createSignInLink } from "../../client/sign-in-link.ts";
import { examples } from "../../examples.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

export function command(session: Session) {
  return new Command("open")
    .description("print a link that opens the web UI signed in, and open it in the browser")
    .addHelpText("after", examples("tradewind open", "tradewind open --no-browser"))
    .option("--no-browser", "only print the link")
    .action(async ({ browser }) => {
      const link = await createSignInLink(session.client);
      if (session.format !== "table") return session.printObject(link, []);
      session.terminal.data(link.url);
      const isOpened = browser && (await openBrowser(link.url, session.host.env));
      session.note(
        `${isOpened ? "Opened in the browser. " : ""}The link signs one browser in, once; it expires ${relativeTime(link.expires_at)}.`,
      );
    });
}
