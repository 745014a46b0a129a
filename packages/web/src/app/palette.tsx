/** Jumps to any page, DAG, run, task or setting: Ctrl K or ⌘K. */
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Radix } from "radix-ui";
import { useDeferredValue, useEffect, useState } from "react";
import { $api } from "../api/client.ts";
import { useFocusReturn } from "../ui/focus-return.ts";
import { PAGES } from "./pages.ts";
import { type Found, PaletteResult, placeOf } from "./palette-result.tsx";

export function Palette({
  open,
  onOpenChange,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}) {
  const returnFocus = useFocusReturn(open);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="fixed top-[12vh] left-1/2 z-50 w-[min(calc(100vw-16px),600px)] -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-surface shadow-lg"
        >
          <Radix.Title className="sr-only">Search or jump to</Radix.Title>
          <Search onDone={() => onOpenChange(false)} />
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Search({ onDone }: { readonly onDone: () => void }) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const found = $api.useQuery(
    "get",
    "/ui/search",
    { params: { query: { q: query } } },
    { enabled: query !== "", placeholderData: (before) => before },
  );
  const go = (to: string, search: Readonly<Record<string, string>> = {}) => {
    onDone();
    void navigate({ to, search: search as never });
  };
  const word = query.toLowerCase();
  const pages = PAGES.filter(({ label }) => label.toLowerCase().includes(word));
  const first = firstOf(query === "" ? [] : (found.data?.results ?? []), pages);
  const [selected, setSelected] = useState(first);
  // cmdk selects the first item only when the text changes: the results arrive later.
  // biome-ignore lint/correctness/useExhaustiveDependencies: new results select the first one, also if it is the same
  useEffect(() => setSelected(first), [first, query, found.data]);
  return (
    <Command shouldFilter={false} label="Search or jump to" value={selected} onValueChange={setSelected}>
      <Command.Input
        value={text}
        onValueChange={setText}
        placeholder="Search or jump to…"
        className="h-11 w-full border-b border-line bg-transparent px-4 outline-none placeholder:text-faint"
      />
      <Command.List className="max-h-[56vh] overflow-auto p-1.5">
        <Command.Empty className="p-4 text-muted">
          {found.isFetching ? "Searching…" : `Nothing found for "${query}".`}
        </Command.Empty>
        {query !== "" && found.data && found.data.results.length > 0 && (
          <Command.Group heading="Results" className={GROUP}>
            {found.data.results.map((result) => (
              <Item
                key={keyOf(result)}
                value={keyOf(result)}
                onSelect={() => {
                  const { search, to } = placeOf(result);
                  go(to, search);
                }}
              >
                <PaletteResult result={result} />
              </Item>
            ))}
          </Command.Group>
        )}
        {pages.length > 0 && (
          <Command.Group heading="Pages" className={GROUP}>
            {pages.map((page) => (
              <Item key={page.to} value={pageKey(page)} onSelect={() => go(page.to)}>
                <page.icon aria-hidden className="size-3.5 text-muted" />
                {page.label}
                {page.key && <kbd className="ml-auto text-sm text-faint">g {page.key}</kbd>}
              </Item>
            ))}
          </Command.Group>
        )}
      </Command.List>
    </Command>
  );
}

function firstOf(results: readonly Found[], pages: typeof PAGES): string {
  if (results[0] !== undefined) return keyOf(results[0]);
  return pages[0] === undefined ? "" : pageKey(pages[0]);
}

function pageKey({ to }: { readonly to: string }): string {
  return `page ${to}`;
}

function keyOf({ dag_id, kind, name }: Found): string {
  return JSON.stringify([kind, dag_id, name]);
}

const GROUP =
  "[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-sm [&_[cmdk-group-heading]]:text-muted";

function Item({
  value,
  onSelect,
  children,
}: {
  readonly value: string;
  readonly onSelect: () => void;
  readonly children: React.ReactNode;
}) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex h-8 items-center gap-2.5 rounded-md px-2.5 data-[selected=true]:bg-hover"
    >
      {children}
    </Command.Item>
  );
}
