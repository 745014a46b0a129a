import { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { examples } from "../../examples.ts";
import { parseJson, readSource } from "../../input/values.ts";
import type { Session } from "../../session.ts";

interface WebhookUrl {
  readonly name: string;
  readonly path: string;
  readonly url: string | null;
}

interface WebhookReceipt {
  readonly name: string;
  readonly position: number;
  readonly received_at: string;
}

export function command(session: Session) {
  const webhooks = new Command("webhooks")
    .description("print webhook URLs and send test webhooks")
    .addHelpText("after", examples("tradewind webhooks url payment"));

  webhooks
    .command("url")
    .description("print the URL of a webhook")
    .addHelpText("after", examples("tradewind webhooks url payment"))
    .argument("<name>", "A-Z a-z 0-9 _ . -")
    .action(async (name) => {
      const found = await session.client.get<WebhookUrl>(path`/webhooks/${name}`, {
        what: `cannot get the URL of the webhook ${name}`,
      });
      // Without a public URL, use the address of this command's server: the server does not know how others reach it.
      const url = found.url ?? `${session.client.target.url}${found.path}`;
      if (session.format !== "table") return session.printObject({ ...found, url }, []);
      session.terminal.data(url);
      session.note("Anyone with this URL can send the webhook with POST, without a token.");
    });

  webhooks
    .command("send")
    .description("send a webhook")
    .addHelpText(
      "after",
      examples(
        `tradewind webhooks send payment --data '{"order": 7}'`,
        "tradewind webhooks send payment --data @payment.json",
      ),
    )
    .argument("<name>")
    .option("--data <json>", "body: JSON, @file, or @- for stdin (default: null)")
    .action(async (name, { data }) => {
      const source = data === undefined ? undefined : readSource(data, "--data");
      const receipt = await session.client.post<WebhookReceipt>(path`/webhooks/${name}`, {
        what: `cannot send the webhook ${name}`,
        body: source === undefined ? null : parseJson(source.text, source.name),
        idempotent: true,
      });
      await session.printDone(receipt, `Webhook ${name} sent: position ${receipt.position}.`);
    });

  return webhooks;
}
