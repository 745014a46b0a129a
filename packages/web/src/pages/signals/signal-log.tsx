/** Signals over time, and the newest of them. Unless the list follows, new ones are announced above it and move nothing. */
import { keepPreviousData } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { reloadPaths } from "../../actions/change.ts";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { usePreferences } from "../../app/preferences.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useLive } from "../../live/live.ts";
import { useThrottled } from "../../live/throttled.ts";
import { count, dateTime } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { SearchBox, Select } from "../../ui/field.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { Histogram } from "./histogram.tsx";
import { SignalPane } from "./signal-pane.tsx";
import { LASTS, lastOf, rangeOf } from "./time-range.ts";

type Signal = components["schemas"]["UiSignals"]["signals"][number];

const PAGE = 100;
const RELOAD_MS = 1_000;
const NAMESPACES = ["default", "asset", "webhook", "task", "run", "trigger", "schedule", "action"];

export function SignalLog() {
  const [search, setSearch] = useSearchState();
  const key = textOf(search, "key") ?? "";
  const sender = textOf(search, "sender") ?? "";
  const namespace = textOf(search, "namespace") ?? "default";
  const open = Number(textOf(search, "signal")) || null;
  const [isFollowing, setIsFollowing] = useState(true);
  const [missed, setMissed] = useState(0);
  const [now, setNow] = useState(Date.now);
  const last = lastOf(textOf(search, "last"));
  const [from, to] = [textOf(search, "from"), textOf(search, "to")];
  const range = useMemo(() => rangeOf({ from, to, last }, now), [from, to, last, now]);
  const { zone } = usePreferences();
  const filter = {
    ...(key && { key: [key] }),
    ...(sender && { sender }),
    ...(namespace !== "default" && { namespace }),
  };
  const list = $api.useInfiniteQuery(
    "get",
    "/ui/signals",
    { params: { query: { limit: PAGE, ...filter, ...(!range.isLive && { from, to }) } } },
    {
      // With undefined, the library sends the cursor 0: before the first signal.
      initialPageParam: null,
      getNextPageParam: (page) => page.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  const reload = useCallback(() => {
    setMissed(0);
    setNow(Date.now());
    void reloadPaths(["/ui/signals", "/ui/signals/histogram"]);
  }, []);
  const follow = useThrottled(reload, RELOAD_MS);
  useLive("signals", (message) => {
    if (!range.isLive) return;
    if (isFollowing) return follow();
    if (!("namespaces" in message)) return;
    const counts = Object.entries(message.namespaces).filter(
      ([name]) => namespace === "*" || name === namespace,
    );
    setMissed((before) => before + counts.reduce((sum, [, each]) => sum + each, 0));
  });
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ signals }) => signals), [list.data]);
  const isFiltered = key !== "" || sender !== "" || !range.isLive || namespace !== "default";
  return (
    <>
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
          <Select
            aria-label="Namespace"
            value={namespace}
            onChange={({ target }) =>
              setSearch({ namespace: target.value === "default" ? undefined : target.value })
            }
          >
            <option value="*">All namespaces</option>
            {(NAMESPACES.includes(namespace) || namespace === "*"
              ? NAMESPACES
              : [...NAMESPACES, namespace]
            ).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </Select>
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
          {range.isLive ? (
            <Select
              aria-label="Range of time"
              value={last}
              onChange={({ target }) => setSearch({ last: target.value === "1h" ? undefined : target.value })}
            >
              {Object.keys(LASTS).map((each) => (
                <option key={each} value={each}>
                  last {each.replace(/(?=[mhd])/, " ")}
                </option>
              ))}
            </Select>
          ) : (
            <Button
              aria-label="Show the latest signals again"
              onClick={() => setSearch({ from: undefined, to: undefined }, { replace: false })}
            >
              {dateTime(range.from, zone)} – {dateTime(range.to, zone)} ✕
            </Button>
          )}
          <label className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={isFollowing && range.isLive}
              disabled={!range.isLive}
              onChange={(event) => setIsFollowing(event.target.checked)}
            />
            Follow
          </label>
          {missed > 0 && range.isLive && <Button onClick={reload}>{count(missed)} new signals</Button>}
        </div>
        <Histogram
          filter={filter}
          range={range}
          onSelect={(selected) => setSearch(selected, { replace: false })}
          onName={(name) =>
            setSearch(namespace.includes("*") ? { namespace: name } : { key: `${name}*` }, { replace: false })
          }
        />
        <div className="min-h-0 flex-1">
          <PagedTable
            query={list}
            empty={
              <Empty
                title={isFiltered ? "No signal matches" : "No signal was sent yet"}
                command={`tradewind signals send model.ready '{"version": 3}'`}
              >
                A signal is a named, stored message that starts, restarts or stops tasks, or ends a wait.
              </Empty>
            }
            label="Signals"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ version }) => version}
            rowHeight={28}
            onOpen={({ version }) => setSearch({ signal: version })}
            isOpen={({ version }) => version === open}
          />
        </div>
      </div>
      {open !== null && (
        <SignalPane key={open} version={open} onClose={() => setSearch({ signal: undefined })} />
      )}
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
    from: "sm",
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
  { id: "effect", header: "Effect", width: "130px", cell: (signal) => <Effect signal={signal} /> },
  {
    id: "version",
    header: "Version",
    numeric: true,
    width: "90px",
    from: "lg",
    cell: ({ version }) => version,
  },
];

/** What the signal has caused: "1 run, 3 tasks". */
function Effect({ signal: { dead_letters: dead, runs, tasks } }: { readonly signal: Signal }) {
  const parts = [amount(runs, "run"), amount(tasks, "task")].filter((part) => part !== null);
  return (
    <span className="whitespace-nowrap">
      {parts.length === 0 && dead === 0 ? <span className="text-faint">none</span> : parts.join(", ")}
      {dead > 0 && (
        <span className="text-danger">
          {parts.length > 0 && ", "}
          {amount(dead, "dead letter")}
        </span>
      )}
    </span>
  );
}

/** The server counts up to a hundred. */
function amount(number: number, of: string): string | null {
  if (number === 0) return null;
  return `${number}${number >= 100 ? "+" : ""} ${of}${number === 1 ? "" : "s"}`;
}
