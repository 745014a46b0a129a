import { commandOf } from "../../actions/command-text.ts";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { useReload } from "../../live/reload.ts";
import { Ago, Exact } from "../../time/time.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Facts } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Loads } from "../../ui/panels.tsx";
import { SignalChain } from "./signal-chain.tsx";

type Recipient = components["schemas"]["SignalEffects"]["recipients"][number];

const EFFECTS = "/api/v2/signals/{version}/effects";

/** One signal: its value, what it is from, what it caused, and which listeners have received it. */
export function SignalPane({ version, onClose }: { readonly version: number; readonly onClose: () => void }) {
  const query = $api.useQuery("get", EFFECTS, { params: { path: { version }, query: { limit: 100 } } });
  useReload("signals", [EFFECTS]);
  const signal = query.data?.signal;
  return (
    <Pane title={<span className="font-mono">{signal?.key ?? `Signal ${version}`}</span>} onClose={onClose}>
      <Loads query={query}>
        {(chain) => (
          <div className="flex flex-col gap-5 p-4">
            <Facts
              rows={[
                [
                  "Sent",
                  <span key="time" className="flex flex-wrap gap-x-2">
                    <Exact at={chain.signal.time} />
                    <span className="text-muted">
                      <Ago at={chain.signal.time} />
                    </span>
                  </span>,
                ],
                ["Sender", chain.signal.sender || "–"],
                ["Namespace", chain.signal.namespace],
                ["Version", chain.signal.version],
              ]}
            />
            <SignalChain chain={chain} />
            <Recipients recipients={chain.recipients} />
            <section className="flex flex-col gap-1.5">
              <h3>Value</h3>
              <div className="rounded-md border border-line bg-raised p-2">
                <JsonTree value={chain.signal.value ?? null} name="value" />
              </div>
            </section>
            <section className="flex flex-col gap-1.5">
              <h3>On the command line</h3>
              <Copyable text={`tradewind signals show ${version}`} />
              {!RESERVED.has(chain.signal.namespace) && (
                <Copyable
                  text={commandOf(
                    "tradewind",
                    "signals",
                    "send",
                    chain.signal.key,
                    JSON.stringify(chain.signal.value ?? null),
                    chain.signal.namespace !== "default" && `--namespace=${chain.signal.namespace}`,
                  )}
                />
              )}
            </section>
          </div>
        )}
      </Loads>
    </Pane>
  );
}

/** Only the engine sends these. */
const RESERVED = new Set(["action", "asset", "run", "task", "trigger", "webhook"]);

const STATES: Readonly<Record<Recipient["state"], string>> = {
  received: "received",
  waiting: "not reached yet",
  retrying: "retrying",
  dead: "dead letter",
};

function Recipients({ recipients }: { readonly recipients: readonly Recipient[] }) {
  if (recipients.length === 0) return null;
  return (
    <section className="flex flex-col gap-1.5">
      <h3>Listeners</h3>
      <ul>
        {recipients.map(({ dead_letter_id, error, host, name, state }) => (
          <li key={dead_letter_id ?? name} className="border-b border-line py-1">
            <div className="flex justify-between gap-2">
              <span className="min-w-0 break-all">
                {name} {host !== null && <span className="text-muted">on {host}</span>}
              </span>
              <span className={`whitespace-nowrap ${state === "dead" ? "text-danger" : "text-muted"}`}>
                {STATES[state]}
              </span>
            </div>
            {error !== null && <code className="block break-words text-danger">{error}</code>}
          </li>
        ))}
      </ul>
    </section>
  );
}
