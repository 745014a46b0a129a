/** Jumps to any page, DAG, run, task or setting: Ctrl K or ⌘K. */
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Radix } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { $api } from "../api/client.ts";
import { PAGES } from "./pages.ts";
import { type Found, PaletteResult, placeOf } from "./palette-result.tsx";

export function Palette({
  open,
  onOpenChange,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          aria-describedby={undefined}
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
  return (
    <Command shouldFilter={false} label="Search or jump to">
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
              <Item key={page.to} value={`page ${page.to}`} onSelect={() => go(page.to)}>
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
