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
    .description("send signals, and see who listens to them and what for")
    .addHelpText(
      "after",
      examples(`tradewind signals send model.ready '{"version": 3}'`, "tradewind signals listen 'model.*'"),
    );
  addSend(signals, session);
  addList(signals, session);
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
    .argument("[value]", "its value: JSON, @file or @- for standard input; null when not given")
    .option("--namespace <name>", '"default" when not given')
    .option("--sender <name>", "the name of the token when not given")
    .option("--idempotency-key <key>", "send it once, however often this is called with the same key")
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
    .description("list signals, the newest last")
    .addHelpText(
      "after",
      examples(
        "tradewind signals list 'model.*' --since 2026-01-31",
        "tradewind signals list --sender training --limit 10",
      ),
    )
    .argument("[key]", "only of this key; * stands for anything")
    .option("--namespace <name>", '* stands for anything; "default" when not given')
    .option("--sender <name>", "only of this sender")
    .option("--after-version <n>", "only later ones", wholeNumber(0))
    .option("--since <time>", "only those sent since then", parseInstant)
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async (key, { afterVersion, limit, namespace, sender, since }) => {
      const query = { key, namespace, sender, version_gt: afterVersion, time_gte: since };
      const listed = await newest(session, query, limit);
      await session.printList(listed, SIGNAL_COLUMNS, "There are no such signals.");
    });
}

function addListen(signals: Command, session: Session): void {
  signals
    .command("listen")
    .description("print signals as they come, until interrupted")
    .addHelpText(
      "after",
      examples(
        "tradewind signals listen 'model.*'",
        "# everything since a time, then what comes",
        "tradewind signals listen '*' --from 2026-01-31T08:00:00Z --json",
      ),
    )
    .argument("<pattern>", "the key; * stands for anything")
    .option("--namespace <name>", '* stands for anything; "default" when not given')
    .option("--sender <name>", "only of this sender")
    .option("--from <place>", "start, now, a version, a time or a position; now when not given", startOf)
    .option("--count <n>", "end after so many", wholeNumber(1))
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
    .description("list and delete listeners that have a name, and see how far each has come")
    .addHelpText("after", examples("tradewind signals listeners list"));

  listeners
    .command("list")
    .description("list the listeners that have a name, and how far each has come")
    .addHelpText("after", examples("tradewind signals listeners list"))
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ limit }) => {
      const listed = await session.client.list<Listener>({
        path: "/signals/listeners",
        key: "listeners",
        what: "cannot list the listeners",
        limit,
      });
      await session.printList(listed, listenerColumns(session), "There are no listeners with a name.");
    });

  listeners
    .command("delete")
    .description("delete a listener that is not active: signals are not kept for it any more")
    .addHelpText("after", examples("tradewind signals listeners delete mailer"))
    .argument("<name>")
    .action(async (name) => {
      await session.confirm(`Delete the listener ${name}, and what it has not dealt with yet?`);
      const what = `cannot delete the listener ${name}`;
      await session.client.delete(path`/signals/listeners/${name}`, { what });
      await session.printDone({ name, deleted: true }, `Listener ${name} deleted.`);
    });
}

function addDeadLetters(signals: Command, session: Session): void {
  const letters = signals
    .command("dead-letters")
    .description("list, retry and delete signals that a listener has given up")
    .addHelpText("after", examples("tradewind signals dead-letters list --listener mailer"));

  letters
    .command("list")
    .description("list signals that a listener has given up")
    .addHelpText("after", examples("tradewind signals dead-letters list --listener mailer"))
    .option("--listener <name>", "only of this listener")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ limit, listener }) => {
      const listed = await session.client.list<DeadLetter>({
        path: "/signals/deadLetters",
        key: "dead_letters",
        what: "cannot list the dead letters",
        query: { listener },
        limit,
      });
      await session.printList(listed, LETTER_COLUMNS, "There are no dead letters.");
    });

  letters
    .command("retry")
    .description("have its listener try a dead letter once more")
    .addHelpText("after", examples("tradewind signals dead-letters retry 12"))
    .argument("<id>", "its number in the list", wholeNumber(1))
    .action(async (id) => {
      const letter = await session.client.post<DeadLetter>(path`/signals/deadLetters/${id}/retry`, {
        what: `cannot retry the dead letter ${id}`,
      });
      await session.printDone(letter, `${letter.listener} will try ${letter.signal.key} again.`);
    });

  letters
    .command("delete")
    .description("delete a dead letter")
    .addHelpText("after", examples("tradewind signals dead-letters delete 12"))
    .argument("<id>", "its number in the list", wholeNumber(1))
    .action(async (id) => {
      await session.confirm(`Delete the dead letter ${id}?`);
      const what = `cannot delete the dead letter ${id}`;
      await session.client.delete(path`/signals/deadLetters/${id}`, { what });
      await session.printDone({ id, deleted: true }, `Dead letter ${id} deleted.`);
    });
}

function addServe(signals: Command, session: Session): void {
  signals
    .command("serve")
    .description("serve signals over gRPC against DATABASE_URL; any number may share one database")
    .addHelpText(
      "after",
      examples(
        "tradewind signals serve --port 8081",
        "tradewind signals serve --tls-cert server.pem --tls-key server.key",
      ),
    )
    .option("--port <port>", "where it listens (TRADEWIND_SIGNALS_PORT, else 8081)", wholeNumber(0, 65535))
    .option("--host <address>", "where it listens (TRADEWIND_HOST, else 127.0.0.1)")
    .option("--tls-cert <file>", "its certificate, PEM (TRADEWIND_SIGNALS_TLS_CERT, else without TLS)")
    .option("--tls-key <file>", "the key of its certificate (TRADEWIND_SIGNALS_TLS_KEY)")
    .option("--tls-ca <file>", "clients need a certificate signed by this one (TRADEWIND_SIGNALS_TLS_CA)")
    .action(async ({ host, port, tlsCa, tlsCert, tlsKey }) => {
      const { resolveConfig, startSignalServer } = await import("@tradewind/engine");
      const tls = { signalsTlsCert: tlsCert, signalsTlsKey: tlsKey, signalsTlsCa: tlsCa };
      const flags = { host, signalsPort: port, home: session.options.home, ...tls };
      const config = resolveConfig(flags, session.host.env);
      await serve(
        session,
        (signal) => startSignalServer(config, signal),
        ({ url }) => session.note(`Signals are served on ${url}; the token is in ${config.home}/token.`),
      );
    });
}

/** The newest of them, in the order they were sent. */
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

/** Read with the other options, so that a mistake is told as one of theirs. */
function startOf(from: string): Record<string, string | number> {
  if (from === "now" || from === "start") return { from };
  if (/^\d+$/.test(from)) {
    if (Number.isSafeInteger(Number(from))) return { after_version: Number(from) };
    throw new InvalidArgumentError(`No signal has the version ${from}: give a smaller one, or start or now.`);
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
  { title: "SINCE", value: ({ is_retried, time }) => (is_retried ? "to be retried" : relativeTime(time)) },
  { title: "ATTEMPTS", value: ({ attempts }) => String(attempts), align: "right" },
  { title: "ERROR", value: ({ error }) => error, flexible: true },
];
