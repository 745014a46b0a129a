/** The newest signals. While the list is scrolled down, new ones are announced above it and move nothing. */
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { reloadPaths } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { pagePath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useLive } from "../../live/live.ts";
import { count } from "../../time/format.ts";
import { Ago, Exact } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { Facts } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Empty } from "../../ui/panels.tsx";

type Signal = components["schemas"]["Signal"];

const PAGE = 100;

export function SignalLog() {
  const [search, setSearch] = useSearchState();
  const key = textOf(search, "key") ?? "";
  const sender = textOf(search, "sender") ?? "";
  const open = textOf(search, "signal");
  const [isFollowing, setIsFollowing] = useState(true);
  const [missed, setMissed] = useState(0);
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/signals",
    {
      params: {
        query: { limit: PAGE, order_by: "-version", ...(key && { key: [key] }), ...(sender && { sender }) },
      },
    },
    {
      // With undefined, the library sends the cursor 0: a position before the first signal.
      initialPageParam: null,
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  const reload = useCallback(() => {
    setMissed(0);
    void reloadPaths(["/api/v2/signals"]);
  }, []);
  useLive("signals", (message) => {
    if (isFollowing && !document.hidden) return reload();
    if ("namespaces" in message)
      setMissed((before) => before + Object.values(message.namespaces).reduce((sum, each) => sum + each, 0));
  });
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ signals }) => signals), [list.data]);
  const shown = rows.find((row) => `${row.namespace}:${row.version}` === open);
  return (
    <>
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
          <SearchBox
            label="Key, e.g. model.*"
            value={key}
            onChange={useCallback((text: string) => setSearch({ key: text }), [setSearch])}
          />
          <SearchBox
            label="Sender"
            value={sender}
            onChange={useCallback((text: string) => setSearch({ sender: text }), [setSearch])}
            className="w-36"
          />
          <label className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={isFollowing}
              onChange={(event) => setIsFollowing(event.target.checked)}
            />
            Follow
          </label>
          {missed > 0 && <Button onClick={reload}>{count(missed)} new signals</Button>}
        </div>
        <div className="min-h-0 flex-1">
          <PagedTable
            query={list}
            empty={
              <Empty
                title={key || sender ? "No signal matches" : "No signal was sent yet"}
                command={`tradewind signals send model.ready '{"version": 3}'`}
              >
                A signal is a named, stored message that starts, restarts or stops tasks, or ends a wait.
              </Empty>
            }
            label="Signals"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ namespace, version }) => `${namespace}:${version}`}
            rowHeight={28}
            onOpen={({ namespace, version }) => setSearch({ signal: `${namespace}:${version}` })}
            isOpen={({ namespace, version }) => `${namespace}:${version}` === open}
          />
        </div>
      </div>
      {shown && <SignalPane signal={shown} onClose={() => setSearch({ signal: undefined })} />}
    </>
  );
}

const COLUMNS: readonly Column<Signal>[] = [
  { id: "time", header: "Time", width: "110px", cell: ({ time }) => <Ago at={time} /> },
  {
    id: "key",
    header: "Key",
    width: "30%",
    cell: ({ key, namespace }) => (
      <span className="block max-w-[44ch] truncate font-mono">
        {namespace !== "default" && <span className="text-muted">{namespace}:</span>}
        {key}
      </span>
    ),
  },
  {
    id: "value",
    header: "Value",
    cell: ({ value }) => (
      <code className="block max-w-[70ch] truncate text-muted">
        {value === undefined ? "" : JSON.stringify(value)}
      </code>
    ),
  },
  {
    id: "sender",
    header: "Sender",
    width: "200px",
    from: "md",
    cell: ({ sender }) => <span className="block max-w-[28ch] truncate">{sender || "–"}</span>,
  },
  {
    id: "version",
    header: "Version",
    numeric: true,
    width: "90px",
    from: "lg",
    cell: ({ version }) => version,
  },
];

function SignalPane({ signal, onClose }: { readonly signal: Signal; readonly onClose: () => void }) {
  return (
    <Pane title={<span className="font-mono">{signal.key}</span>} onClose={onClose}>
      <div className="flex flex-col gap-4 p-4">
        <Facts
          rows={[
            ["Time", <Exact key="time" at={signal.time} />],
            ["Namespace", signal.namespace],
            ["Version", signal.version],
            ["Position", <code key="position">{signal.position}</code>],
            ["Sender", signal.sender || "–"],
            signal.namespace !== "asset"
              ? null
              : [
                  "Started runs",
                  <Link
                    key="asset"
                    to={pagePath("assets")}
                    search={{ q: signal.key } as never}
                    className="link"
                  >
                    at the events of the asset
                  </Link>,
                ],
          ]}
        />
        <section className="flex flex-col gap-1.5">
          <h3>Value</h3>
          <pre className="overflow-auto rounded-md border border-line bg-raised p-2 whitespace-pre-wrap">
            {signal.value === undefined ? "none" : JSON.stringify(signal.value, null, 2)}
          </pre>
        </section>
        <section className="flex flex-col gap-1.5">
          <h3>Send it again</h3>
          <Copyable
            text={commandOf("tradewind", "signals", "send", signal.key, JSON.stringify(signal.value ?? null))}
          />
        </section>
      </div>
    </Pane>
  );
}
