/** What happened, and what did it cause? */

import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { Button } from "../../ui/button.tsx";
import { PageHeader } from "../../ui/page.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { Conditions } from "./conditions.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { Listeners } from "./listeners.tsx";
import { SendSignal } from "./send-signal.tsx";
import { SignalLog } from "./signal-log.tsx";

const TABS = ["log", "conditions", "listeners", "dead"] as const;

export default function SignalsPage() {
  const [search, setSearch] = useSearchState();
  const tab = TABS.find((each) => each === textOf(search, "tab")) ?? "log";
  const listeners = $api.useQuery("get", "/api/v2/signals/listeners", { params: { query: { limit: 200 } } });
  const letters = $api.useQuery("get", "/api/v2/signals/deadLetters", { params: { query: { limit: 200 } } });
  useReload(tab === "log" ? null : "signals", ["/api/v2/signals/listeners", "/api/v2/signals/deadLetters"]);
  return (
    <>
      <PageHeader
        title="Signals"
        actions={
          <Button kind="primary" onClick={() => setSearch({ send: true })}>
            Send signal…
          </Button>
        }
      />
      <TabLinks
        label="Parts of signals"
        selected={tab}
        tabs={[
          { id: "log", label: "Log" },
          { id: "conditions", label: "Conditions" },
          { id: "listeners", label: "Listeners", count: listeners.data?.total_entries },
          { id: "dead", label: "Dead letters", count: letters.data?.total_entries },
        ]}
      />
      <div className="flex min-h-0 flex-1">
        {tab === "log" && <SignalLog />}
        {tab === "conditions" && <Conditions />}
        {tab === "listeners" && <Listeners query={listeners} />}
        {tab === "dead" && <DeadLetters query={letters} />}
      </div>
      {search["send"] !== undefined && (
        <SendSignal
          initialKey={typeof search["send"] === "string" ? search["send"] : ""}
          onClose={() => setSearch({ send: undefined })}
        />
      )}
    </>
  );
}
