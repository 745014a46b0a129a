import { Plus } from "lucide-react";
import { type ReactNode, useCallback } from "react";
import { textOf, useSearchState } from "../app/search.ts";
import { Button } from "./button.tsx";
import { SearchBox } from "./field.tsx";
import { PageHeader } from "./page.tsx";

/** The head of a list of named things: a filter by name, which is the search parameter `q`, and a button for a new one. */
export function NamedListHeader({
  title,
  facts,
  filter,
  create,
  onCreate,
}: {
  readonly title: string;
  readonly facts: ReactNode;
  /** "Filter by key", for example. */
  readonly filter: string;
  /** "New variable", for example. */
  readonly create: string;
  readonly onCreate: () => void;
}) {
  const [search, setSearch] = useSearchState();
  const onFilter = useCallback((q: string) => setSearch({ q }), [setSearch]);
  return (
    <PageHeader
      title={title}
      facts={facts}
      actions={
        <>
          <SearchBox label={filter} value={textOf(search, "q") ?? ""} onChange={onFilter} />
          <Button kind="primary" onClick={onCreate}>
            <Plus aria-hidden /> {create}
          </Button>
        </>
      }
    />
  );
}
