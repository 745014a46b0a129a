import { Command } from "@commander-js/extra-typings";
import { InvalidArgumentError } from "commander";
import { path } from "../../client/client.ts";
import { followSignals, type Signal } from "../../client/signal-stream.ts";
import { examples } from "../../examples.ts";
import { parseInstant, parseJson, readSource, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { serve } from "../service/service.ts";
import { addConditions } from "./signal-conditions.ts";
import { addShow } from "./signal-show.ts";

interface Listener {
  readonly name: string;
  readonly filter: { readonly namespace: string; readonly keys: readonly string[] };
  readonly is_active: boolean;
  readonly host: string | null;
  readonly behind: number;
  readonly processed: number;
  readonly dead_letters: number;
  readonly retrying: readonly unknown[];
  readonly seen_at: string;
}

interface DeadLetter {
  readonly id: number;
  readonly listener: string;
  readonly signal: Signal;
  readonly error: string;
  readonly attempts: number;
  readonly time: string;
  readonly is_retried: boolean;
}

export function command(session: Session) {
  const signals = new Command("signals")
    .description("send, list and listen to signals, inspect listeners and rules")
    .addHelpText(
      "after",
      examples(`tradewind signals send model.ready '{"version": 3}'`, "tradewind signals listen 'model.*'"),
    );
  addSend(signals, session);
  addList(signals, session);
  addShow(signals, session);
  addListen(signals, session);
  addConditions(signals, session);
  addListeners(signals, session);
  addDeadLetters(signals, session);
  addServe(signals, session);
  return signals;
}

function addSend(signals: Command, session: Session): void {
  signals
    .command("send")
    .description("send a signal")
    .addHelpText(
      "after",
      examples(
        `tradewind signals send model.ready '{"version": 3}'`,
        "tradewind signals send model.ready @model.json --idempotency-key v3",
      ),
    )
    .argument("<key>")
    .argument("[value]", "value: JSON, @file, or @- for stdin (default: null)")
    .option("--namespace <name>", "namespace (default: default)")
    .option("--sender <name>", "sender (default: the name of the token)")
    .option("--idempotency-key <key>", "send at most one signal with this key")
    .action(async (key, value, { idempotencyKey, namespace, sender }) => {
      const source = value === undefined ? undefined : readSource(value, "the value");
      const answer = await session.client.post<{ signals: [Signal & { is_duplicate: boolean }] }>(
        "/signals",
        {
          what: `cannot send the signal ${key}`,
          body: {
            key,
            namespace,
            sender,
            value: source === undefined ? null : parseJson(source.text, source.name),
          },
          idempotent: idempotencyKey ?? true,
        },
      );
      const [sent] = answer.signals;
      await session.printDone(sent, `Signal ${key} sent: version ${sent.version}.`);
    });
}

function addList(signals: Command, session: Session): void {
  signals
    .command("list")
    .description("list signals, newest last")
    .addHelpText(
      "after",
      examples(
        "tradewind signals list 'model.*' --since 2026-01-31",
        "tradewind signals list --sender training --limit 10",
      ),
    )
    .argument("[key]", "only signals with this key; * matches any text")
    .option("--namespace <name>", "namespace; * matches any text (default: default)")
    .option("--sender <name>", "only signals of this sender")
    .option("--after-version <n>", "only signals after this version", wholeNumber(0))
    .option("--since <time>", "only signals since this time", parseInstant)
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async (key, { afterVersion, limit, namespace, sender, since }) => {
      const query = { key, namespace, sender, version_gt: afterVersion, time_gte: since };
      const listed = await newest(session, query, limit);
      await session.printList(listed, SIGNAL_COLUMNS, "No signals match.");
    });
}

function addListen(signals: Command, session: Session): void {
  signals
    .command("listen")
    .description("print signals as they arrive, until interrupted")
    .addHelpText(
      "after",
      examples(
        "tradewind signals listen 'model.*'",
        "# all signals since a time, then new ones",
        "tradewind signals listen '*' --from 2026-01-31T08:00:00Z --json",
      ),
    )
    .argument("<pattern>", "key; * matches any text")
    .option("--namespace <name>", "namespace; * matches any text (default: default)")
    .option("--sender <name>", "only signals of this sender")
    .option("--from <place>", "start, now, a version, a time or a position (default: now)", startOf)
    .option("--count <n>", "exit after this many signals", wholeNumber(1))
    .action(async (pattern, { count, from, namespace, sender }) => {
      const query = { key: pattern, namespace, sender, ...(from ?? { from: "now" }) };
      await session.interruptible(async (signal) => {
        let left = count ?? Number.POSITIVE_INFINITY;
        for await (const found of followSignals(session.client, query, signal)) {
          session.terminal.data(session.format === "table" ? line(found) : JSON.stringify(found));
          if (--left === 0) return;
        }
      });
    });
}

function addListeners(signals: Command, session: Session): void {
  const listeners = signals
    .command("listeners")
    .description("list and delete named listeners")
    .addHelpText("after", examples("tradewind signals listeners list"));

  listeners
    .command("list")
    .description("list named listeners and their positions")
    .addHelpText("after", examples("tradewind signals listeners list"))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Listener>({
        path: "/signals/listeners",
        key: "listeners",
        what: "cannot list the listeners",
        limit,
      });
      await session.printList(listed, listenerColumns(session), "No named listeners.");
    });

  listeners
    .command("delete")
    .description("delete an inactive listener and its pending signals")
    .addHelpText("after", examples("tradewind signals listeners delete mailer"))
    .argument("<name>")
    .action(async (name) => {
      await session.confirm(`Delete listener ${name} and its pending signals?`);
      const what = `cannot delete the listener ${name}`;
      await session.client.delete(path`/signals/listeners/${name}`, { what });
      await session.printDone({ name, deleted: true }, `Listener ${name} deleted.`);
    });
}

function addDeadLetters(signals: Command, session: Session): void {
  const letters = signals
    .command("dead-letters")
    .description("list, retry and delete dead letters: signals that a listener failed to process")
    .addHelpText("after", examples("tradewind signals dead-letters list --listener mailer"));

  letters
    .command("list")
    .description("list dead letters")
    .addHelpText("after", examples("tradewind signals dead-letters list --listener mailer"))
    .option("--listener <name>", "only dead letters of this listener")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ limit, listener }) => {
      const listed = await session.client.list<DeadLetter>({
        path: "/signals/deadLetters",
        key: "dead_letters",
        what: "cannot list the dead letters",
        query: { listener },
        limit,
      });
      await session.printList(listed, LETTER_COLUMNS, "No dead letters.");
    });

  letters
    .command("retry")
    .description("retry a dead letter")
    .addHelpText("after", examples("tradewind signals dead-letters retry 12"))
    .argument("<id>", "number of the dead letter, from `dead-letters list`", wholeNumber(1))
    .action(async (id) => {
      const letter = await session.client.post<DeadLetter>(path`/signals/deadLetters/${id}/retry`, {
        what: `cannot retry the dead letter ${id}`,
      });
      await session.printDone(letter, `Listener ${letter.listener} retries ${letter.signal.key}.`);
    });

  letters
    .command("delete")
    .description("delete a dead letter")
    .addHelpText("after", examples("tradewind signals dead-letters delete 12"))
    .argument("<id>", "number of the dead letter, from `dead-letters list`", wholeNumber(1))
    .action(async (id) => {
      await session.confirm(`Delete dead letter ${id}?`);
      const what = `cannot delete the dead letter ${id}`;
      await session.client.delete(path`/signals/deadLetters/${id}`, { what });
      await session.printDone({ id, deleted: true }, `Dead letter ${id} deleted.`);
    });
}

function addServe(signals: Command, session: Session): void {
  signals
    .command("serve")
    .description("run a gRPC server for signals on DATABASE_URL; run as many as you need")
    .addHelpText(
      "after",
      examples(
        "tradewind signals serve --port 8081",
        "tradewind signals serve --tls-cert server.pem --tls-key server.key",
      ),
    )
    .option(
      "--port <port>",
      "port to listen on (TRADEWIND_SIGNALS_PORT; default: 8081)",
      wholeNumber(0, 65535),
    )
    .option("--host <address>", "address to listen on (TRADEWIND_HOST; default: 127.0.0.1)")
    .option("--tls-cert <file>", "TLS certificate, PEM (TRADEWIND_SIGNALS_TLS_CERT; default: no TLS)")
    .option("--tls-key <file>", "private key of the certificate (TRADEWIND_SIGNALS_TLS_KEY)")
    .option("--tls-ca <file>", "require client certificates signed by this CA (TRADEWIND_SIGNALS_TLS_CA)")
    .action(async ({ host, port, tlsCa, tlsCert, tlsKey }) => {
      const { resolveConfig, startSignalServer } = await import("@tradewind/engine");
      const tls = { signalsTlsCert: tlsCert, signalsTlsKey: tlsKey, signalsTlsCa: tlsCa };
      const flags = { host, signalsPort: port, home: session.options.home, ...tls };
      const config = resolveConfig(flags, session.host.env);
      await serve(
        session,
        (signal) => startSignalServer(config, signal),
        ({ url }) => session.note(`Serving signals on ${url}. Token: ${config.home}/token`),
      );
    });
}

/** The newest signals, in sending order. */
async function newest(
  session: Session,
  query: Readonly<Record<string, string | number | undefined>>,
  limit: number,
): Promise<{ items: Signal[]; total: number }> {
  const items: Signal[] = [];
  let cursor: string | null = null;
  do {
    const wanted = limit === 0 ? 1_000 : Math.min(1_000, limit - items.length);
    const page: { signals: Signal[]; next_cursor: string | null } = await session.client.get("/signals", {
      what: "cannot list the signals",
      query: { ...query, order_by: "-version", limit: wanted, cursor },
    });
    items.push(...page.signals);
    cursor = page.next_cursor;
  } while (cursor !== null && (limit === 0 || items.length < limit));
  return { items: items.reverse(), total: items.length };
}

/** Parsed with the other options, so that an error is reported as a usage error. */
function startOf(from: string): Record<string, string | number> {
  if (from === "now" || from === "start") return { from };
  if (/^\d+$/.test(from)) {
    if (Number.isSafeInteger(Number(from))) return { after_version: Number(from) };
    throw new InvalidArgumentError(
      `No signal has the version ${from}. Give a smaller version, start or now.`,
    );
  }
  if (/^\d+-\d+$/.test(from) && !/^\d{4}-\d{2}$/.test(from)) return { position: from };
  try {
    return { since: parseInstant(from) };
  } catch {
    throw new InvalidArgumentError(
      "Give start, now, a version such as 12, a time such as 2026-01-31T08:00:00Z, or the position of a signal.",
    );
  }
}

function line({ key, namespace, time, value, version }: Signal): string {
  const name = namespace === "default" ? key : `${namespace}/${key}`;
  return `${moment(time)}  ${name}  ${version}  ${JSON.stringify(value)}`;
}

const SIGNAL_COLUMNS: readonly Column<Signal>[] = [
  { title: "VERSION", value: ({ version }) => String(version), align: "right" },
  { title: "NAMESPACE", value: ({ namespace }) => namespace, optional: true },
  { title: "KEY", value: ({ key }) => key },
  { title: "SENT", value: ({ time }) => relativeTime(time) },
  { title: "SENDER", value: ({ sender }) => sender, optional: true },
  { title: "VALUE", value: ({ value }) => JSON.stringify(value), flexible: true },
];

function listenerColumns({ terminal }: Session): readonly Column<Listener>[] {
  return [
    { title: "NAME", value: ({ name }) => name },
    { title: "KEYS", value: ({ filter }) => keysText(filter), flexible: true },
    {
      title: "ACTIVE",
      value: ({ host, is_active, seen_at }) =>
        is_active ? (host === null ? "yes" : `on ${host}`) : `last ${relativeTime(seen_at)}`,
      paint: ({ is_active }, cell) => (is_active ? cell : terminal.paint("yellow", cell)),
    },
    {
      title: "BEHIND",
      value: ({ behind }) => (behind >= 10_000 ? "10000+" : String(behind)),
      align: "right",
    },
    { title: "PROCESSED", value: ({ processed }) => String(processed), align: "right", optional: true },
    { title: "RETRYING", value: ({ retrying }) => String(retrying.length), align: "right" },
    {
      title: "DEAD",
      value: ({ dead_letters }) => String(dead_letters),
      align: "right",
      paint: ({ dead_letters }, cell) => (dead_letters > 0 ? terminal.paint("red", cell) : cell),
    },
  ];
}

function keysText({ keys, namespace }: Listener["filter"]): string {
  const names = keys.join(", ");
  return namespace === "default" ? names : `${namespace}: ${names}`;
}

const LETTER_COLUMNS: readonly Column<DeadLetter>[] = [
  { title: "ID", value: ({ id }) => String(id), align: "right" },
  { title: "LISTENER", value: ({ listener }) => listener },
  { title: "KEY", value: ({ signal }) => signal.key },
  { title: "VERSION", value: ({ signal }) => String(signal.version), align: "right" },
  { title: "SINCE", value: ({ is_retried, time }) => (is_retried ? "retry pending" : relativeTime(time)) },
  { title: "ATTEMPTS", value: ({ attempts }) => String(attempts), align: "right" },
  { title: "ERROR", value: ({ error }) => error, flexible: true },
];
