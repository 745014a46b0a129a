/** The search in a whole log: the server finds the lines, the arrows go from one to the next. */
import { ChevronDown, ChevronUp, Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { count } from "../time/format.ts";
import { IconButton } from "../ui/button.tsx";

export interface Found {
  readonly text: string;
  readonly total: number;
  readonly lines: readonly number[];
}

const NOTHING: Found = { text: "", total: 0, lines: [] };

/** The lines with a text; kept while others are searched. */
export function useLogSearch(
  text: string,
  search: (text: string, signal: AbortSignal) => Promise<Omit<Found, "text">>,
  /** Changes when the log has grown. */
  lines: number,
): { readonly found: Found; readonly isSearching: boolean } {
  const [found, setFound] = useState(NOTHING);
  const [isSearching, setSearching] = useState(false);
  // A log that grows is searched again a while later, not with each line.
  const [grown, setGrown] = useState(lines);
  useEffect(() => {
    if (text === "" || grown === lines) return;
    const timer = setTimeout(() => setGrown(lines), 1_000);
    return () => clearTimeout(timer);
  }, [text, grown, lines]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: searched again when the log has grown
  useEffect(() => {
    if (text === "") {
      setFound(NOTHING);
      setSearching(false);
      return;
    }
    const stop = new AbortController();
    setSearching(true);
    search(text, stop.signal)
      .then((answer) => {
        setFound({ ...answer, text });
        setSearching(false);
      })
      .catch(() => {
        if (!stop.signal.aborted) setSearching(false);
      });
    return () => stop.abort();
  }, [text, search, grown]);
  return { found, isSearching };
}

/** The first match from a line on; from the first again after the last. */
export function matchFrom(lines: readonly number[], from: number, backwards: boolean): number | undefined {
  if (backwards) return lines.findLast((line) => line <= from) ?? lines.at(-1);
  return lines.find((line) => line >= from) ?? lines[0];
}

export function LogSearch({
  text,
  onText,
  found,
  isSearching,
  current,
  onGo,
}: {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly found: Found;
  readonly isSearching: boolean;
  /** The line of the current match. */
  readonly current: number | null;
  readonly onGo: (backwards: boolean) => void;
}) {
  const [typed, setTyped] = useState(text);
  const sent = useRef(text);
  useEffect(() => {
    if (text === sent.current) return;
    sent.current = text;
    setTyped(text);
  }, [text]);
  useEffect(() => {
    if (typed === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      onText(typed);
    }, 100);
    return () => clearTimeout(timer);
  }, [typed, onText]);
  const at = current === null ? -1 : found.lines.indexOf(current);
  return (
    <div className="relative flex w-64 min-w-40 shrink items-center rounded-md border border-line-strong bg-surface focus-within:outline-2 focus-within:outline-accent">
      <Search aria-hidden className="ml-2 size-3.5 shrink-0 text-faint" />
      <input
        type="search"
        data-search
        aria-label="Search in the whole log"
        placeholder="Search in the whole log"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          onGo(event.shiftKey);
        }}
        className="h-6.5 w-full min-w-0 bg-transparent px-2 outline-none placeholder:text-faint [&::-webkit-search-cancel-button]:hidden"
      />
      {text !== "" && (
        <>
          <span role="status" className="shrink-0 text-sm text-muted tabular-nums">
            {isSearching && found.text !== text
              ? "Searching…"
              : found.total === 0
                ? "None"
                : `${at < 0 ? "" : `${count(at + 1)} of `}${count(found.total)}`}
          </span>
          <IconButton
            label="Previous match (Shift Enter)"
            className="h-6 w-6"
            disabled={found.total === 0}
            onClick={() => onGo(true)}
          >
            <ChevronUp />
          </IconButton>
          <IconButton
            label="Next match (Enter)"
            className="h-6 w-6"
            disabled={found.total === 0}
            onClick={() => onGo(false)}
          >
            <ChevronDown />
          </IconButton>
        </>
      )}
    </div>
  );
}
