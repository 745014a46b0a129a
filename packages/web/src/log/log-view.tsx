/** A log of any size: live, with search, filters, copies and links to lines. What is shown is part of the address. */
import {
  type KeyboardEvent,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { toast } from "sonner";
import { messageOf } from "../api/problem.ts";
import { usePreferences } from "../app/preferences.ts";
import { textOf, useSearchState } from "../app/search.ts";
import { bytes, clock, count } from "../time/format.ts";
import { copyText } from "../ui/copy.tsx";
import { Failure, Loading, Stale } from "../ui/panels.tsx";
import { cutLines, ordered, type Point, pointOf } from "./copied-text.ts";
import { foldedRows, groupAt } from "./log-groups.ts";
import { datedText, plainText } from "./log-line.ts";
import type { LogModel } from "./log-model.ts";
import { LogRow } from "./log-row.tsx";
import { filteredRows, KINDS, type Kind, kindOf, SOURCES } from "./log-rows.ts";
import { LogScroller, type ScrollerHandle } from "./log-scroller.tsx";
import { LogSearch, matchFrom, useLogSearch } from "./log-search.tsx";
import { LogToolbar } from "./log-toolbar.tsx";
import { Minimap } from "./minimap.tsx";
import { OneLine } from "./one-line.tsx";
import { useStored } from "./stored-choice.ts";
import { useLogGroups } from "./use-log-groups.ts";

const CONTEXT_LINES = 3;
const MOST_COPIED = 32 * 1024 * 1024;

export function LogView({
  model,
  search,
  fileName,
  emptyText,
}: {
  readonly model: LogModel;
  readonly search: (
    text: string,
    signal: AbortSignal,
  ) => Promise<{ readonly total: number; readonly lines: readonly number[] }>;
  readonly fileName: string;
  readonly emptyText: string;
}) {
  const version = useSyncExternalStore(model.subscribe, model.version);
  const { zone } = usePreferences();
  const [address, setAddress] = useSearchState();
  const [wraps, setWraps] = useStored("log-wrap", false);
  const [hasTime, setTime] = useStored("log-time", true);
  const text = textOf(address, "q") ?? "";
  const marked = textOf(address, "line");
  const mark = useMemo(() => markOf(marked), [marked]);
  const levels = textOf(address, "level");
  const kinds = useMemo(() => kindsOf(levels), [levels]);
  const source = SOURCES.find((each) => each === textOf(address, "source")) ?? null;
  const hasContext = textOf(address, "context") !== undefined;
  const [follows, setFollows] = useState(mark === null);
  const [shown, setShown] = useState<readonly [number, number]>([0, 0]);
  const [current, setCurrent] = useState<number | null>(null);
  const [allSelected, setAllSelected] = useState(false);
  const [opened, setOpened] = useState<number | null>(null);
  const scroller = useRef<ScrollerHandle>(null);
  const anchor = useRef<Point | null>(null);
  const { lines } = model;
  const { found, isSearching } = useLogSearch(text, search, lines);

  const { groups, isFolded, ...folding } = useLogGroups(model, lines);
  const rows = useMemo(
    () =>
      kinds === null && source === null
        ? foldedRows(lines, groups, isFolded)
        : filteredRows(model.kinds, { kinds, source }, hasContext ? CONTEXT_LINES : 0),
    [model, lines, kinds, source, hasContext, groups, isFolded],
  );
  const counts = useCounts(model, lines);

  const [goal, setGoal] = useState<{ readonly line: number } | null>(null);
  const goTo = (line: number) => {
    folding.reveal(line);
    setGoal({ line });
  };
  // After the groups around the line were unfolded: its row is another one then.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once per goal
  useEffect(() => {
    if (goal !== null) scroller.current?.show(rows.rowOf(goal.line));
  }, [goal]);

  // To the marked line, once it is known.
  const went = useRef("");
  // biome-ignore lint/correctness/useExhaustiveDependencies: once per marked line
  useEffect(() => {
    const wanted = mark === null ? "" : `${mark[0]}`;
    if (wanted === went.current || lines === 0) return;
    went.current = wanted;
    if (mark !== null) goTo(mark[0] - 1);
  }, [mark, lines]);

  const go = (backwards: boolean) => {
    const line = matchFrom(
      found.lines,
      current === null ? rows.at(shown[0]) : current + (backwards ? -1 : 1),
      backwards,
    );
    if (line === undefined) return;
    setCurrent(line);
    goTo(line);
  };
  // The first match of a new text that is not in the window yet.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another text was found
  useEffect(() => {
    setCurrent(null);
    if (found.text === "" || found.lines.length === 0 || mark !== null) return;
    const [from, to] = [rows.at(shown[0]), rows.at(Math.max(shown[0], shown[1] - 1))];
    const visible = found.lines.find(
      (line) => line >= from && line <= to && rows.at(rows.rowOf(line)) === line,
    );
    const line = visible ?? matchFrom(found.lines, from, false)!;
    setCurrent(line);
    if (visible === undefined) goTo(line);
  }, [found.text]);

  const onMark = useCallback(
    (line: number, extend: boolean) => {
      const from = extend && mark !== null ? Math.min(mark[0], line + 1) : line + 1;
      const to = extend && mark !== null ? Math.max(mark[0], line + 1) : line + 1;
      const value = from === to ? `${from}` : `${from}-${to}`;
      // The line is where it was clicked: nothing moves.
      went.current = `${from}`;
      setAddress({ line: mark !== null && mark[0] === from && mark[1] === to ? undefined : value });
      setFollows(false);
    },
    [mark, setAddress],
  );

  const copy = async (from: Point, to: Point) => {
    const texts: string[] = [];
    for await (const part of model.range(from.line, to.line + 1)) texts.push(...part.map(plainText));
    await copyText(cutLines(texts, from, to));
    toast.success(`Copied ${count(texts.length)} ${texts.length === 1 ? "line" : "lines"}`);
  };
  const copyAll = async () => {
    if (model.size > MOST_COPIED) {
      toast.error(`The log has ${bytes(model.size)}: too much for the clipboard. Download it.`);
      return;
    }
    await copyText((await wholeText(model)).join(""));
    toast.success(`Copied ${count(model.lines)} lines`);
  };
  const download = async () => {
    const url = URL.createObjectURL(new Blob(await wholeText(model), { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = fileName;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const attempt = (work: () => Promise<void>) => () => {
    work().catch((error: unknown) => toast.error(messageOf(error)));
  };

  const onCopy = (event: React.ClipboardEvent) => {
    const selection = document.getSelection();
    if (selection === null || (selection.isCollapsed && !allSelected)) return;
    event.preventDefault();
    if (allSelected) return attempt(copyAll)();
    const focus = pointOf(selection.focusNode, selection.focusOffset);
    const start = pointOf(selection.anchorNode, selection.anchorOffset) ?? anchor.current;
    const visible: Point = { line: Math.max(0, rows.at(shown[1] - 1)), column: Number.MAX_SAFE_INTEGER };
    const [from, to] = ordered(start ?? visible, focus ?? visible);
    attempt(() => copy(from, to))();
  };
  // The row in which a selection began may be gone when it is copied.
  useEffect(() => {
    const onSelection = () => {
      const selection = document.getSelection();
      if (selection?.isCollapsed) anchor.current = pointOf(selection.anchorNode, selection.anchorOffset);
      if (selection?.isCollapsed) setAllSelected(false);
    };
    document.addEventListener("selectionchange", onSelection);
    return () => document.removeEventListener("selectionchange", onSelection);
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
      event.preventDefault();
      setAllSelected(true);
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "c" && allSelected) {
      // Without a selection of the document, browsers send no copy event.
      event.preventDefault();
      attempt(copyAll)();
    } else if (event.key === "End") {
      event.preventDefault();
      setFollows(true);
    } else if (event.key === "Home") {
      event.preventDefault();
      scroller.current?.show(0);
    } else if (event.key === "n" || event.key === "N") go(event.key === "N");
    else if (event.key === "Escape") setAllSelected(false);
  };
  const onVisible = useCallback((first: number, last: number) => setShown([first, last]), []);

  if (!model.isIndexed)
    return model.error === null ? (
      <Loading label="Reading the log" />
    ) : (
      <Failure error={model.error} onRetry={() => void model.refresh()} />
    );
  const matches = new Set(found.lines.length > 5_000 ? [] : found.lines);
  const drawRow = (row: number) => {
    const line = rows.at(row);
    if (line < 0)
      return (
        <div key={`gap${row}`} className="flex h-5 items-center pl-17 text-sm text-faint select-none">
          ⋯ {count(-line)} {line === -1 ? "line" : "lines"}
        </div>
      );
    const content = model.line(line);
    const group = rows.isFiltered ? null : groupAt(groups, line);
    const isTitle = group?.first === line;
    return (
      <LogRow
        key={line}
        number={line}
        kind={model.kinds[line] ?? 1}
        line={content}
        time={hasTime ? timeOf(content?.at ?? null, zone) : null}
        wraps={wraps}
        wanted={text}
        isMatch={line === current && matches.has(line)}
        isMarked={mark !== null && line + 1 >= mark[0] && line + 1 <= mark[1]}
        isSelected={allSelected}
        depth={group === null ? 0 : group.depth + (isTitle ? 0 : 1)}
        folded={isTitle ? isFolded(group) : null}
        inside={isTitle ? group.end - group.first - 1 : 0}
        onFold={folding.fold}
        onMark={onMark}
        onOpen={setOpened}
      />
    );
  };
  const [firstLine, lastLine] = [lineAt(rows, shown[0]), lineAt(rows, shown[1] - 1)];
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col" data-version={version}>
      <LogToolbar
        search={
          <LogSearch
            text={text}
            onText={(value) => setAddress({ q: value, line: undefined })}
            found={found}
            isSearching={isSearching}
            current={current}
            onGo={go}
          />
        }
        counts={counts}
        kinds={kinds}
        onKinds={(next) => setAddress({ level: next === null ? undefined : [...next].join(".") })}
        source={source}
        onSource={(next) => setAddress({ source: next ?? undefined })}
        folding={
          groups.length === 0 || rows.isFiltered
            ? null
            : { someFolded: groups.some(isFolded), foldAll: folding.foldAll }
        }
        hasContext={hasContext}
        onContext={(on) => setAddress({ context: on ? 1 : undefined })}
        wraps={wraps}
        onWraps={setWraps}
        hasTime={hasTime}
        onTime={setTime}
        follows={follows}
        onFollow={() => setFollows(!follows)}
        onCopy={attempt(copyAll)}
        onDownload={attempt(download)}
      />
      {model.error !== null && <Stale error={model.error} />}
      {lines === 0 ? (
        <p className="flex-1 p-6 text-muted">{emptyText}</p>
      ) : (
        <div className="flex min-h-0 flex-1">
          <LogScroller
            ref={scroller}
            label={`Log, ${count(lines)} lines`}
            count={rows.count}
            row={drawRow}
            wraps={wraps}
            follows={follows}
            onFollow={setFollows}
            onVisible={onVisible}
            onKeyDown={onKeyDown}
            onCopy={onCopy}
            className="pt-1"
          />
          <Minimap
            kinds={model.kinds}
            matches={found.lines}
            first={firstLine}
            last={lastLine + 1}
            onGo={goTo}
          />
        </div>
      )}
      <footer className="flex h-7 shrink-0 items-center gap-4 border-t border-line px-4 text-sm whitespace-nowrap text-muted">
        <span>
          {count(lines)} {lines === 1 ? "line" : "lines"}, {bytes(model.size)},{" "}
          {model.isOver ? "complete" : "being written"}
        </span>
        {allSelected && <span>All lines are selected: copy them with Ctrl C</span>}
        {counts.trigger > 0 && (
          <span className="flex items-center gap-1.5 max-sm:hidden">
            <span aria-hidden className="h-3 w-0.75 bg-deferred" />
            from the trigger, while deferred
          </span>
        )}
        {mark !== null && (
          <span className="ml-auto flex items-center gap-2">
            {mark[0] === mark[1] ? `Line ${count(mark[0])}` : `Lines ${count(mark[0])} to ${count(mark[1])}`}
            <button
              type="button"
              className="link"
              onClick={attempt(async () => {
                await copyText(location.href);
                toast.success("Link copied");
              })}
            >
              Copy link
            </button>
          </span>
        )}
      </footer>
      {opened !== null && <OneLine model={model} line={opened} onClose={() => setOpened(null)} />}
    </div>
  );
}

function useCounts(model: LogModel, lines: number): Record<Kind, number> {
  // biome-ignore lint/correctness/useExhaustiveDependencies: counted again when there are more lines
  return useMemo(() => {
    const perByte = new Uint32Array(128);
    for (const byte of model.kinds) perByte[byte]! += 1;
    const counts: Record<Kind, number> = { debug: 0, info: 0, warn: 0, error: 0, trigger: 0 };
    for (const [byte, found] of perByte.entries()) counts[kindOf(byte)] += found;
    return counts;
  }, [model, lines]);
}

async function wholeText(model: LogModel): Promise<string[]> {
  const parts: string[] = [];
  for await (const lines of model.range(0, model.lines))
    parts.push(lines.map((line) => `${datedText(line)}\n`).join(""));
  return parts;
}

function timeOf(at: number | null, zone: string): string {
  if (at === null) return "";
  return `${clock(at, zone)}.${String(at % 1_000).padStart(3, "0")}`;
}

function lineAt(rows: { readonly count: number; at(row: number): number }, row: number): number {
  for (let each = Math.max(0, Math.min(row, rows.count - 1)); each >= 0; each -= 1)
    if (rows.at(each) >= 0) return rows.at(each);
  return 0;
}

/** "12" or "12-20", from 1 on. */
function markOf(text: string | undefined): readonly [number, number] | null {
  const [, from, to] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? "") ?? [];
  return from === undefined ? null : [Number(from), Number(to ?? from)];
}

function kindsOf(text: string | undefined): ReadonlySet<Kind> | null {
  const found = (text ?? "").split(".").filter((kind): kind is Kind => KINDS.includes(kind as Kind));
  return found.length === 0 ? null : new Set(found);
}
