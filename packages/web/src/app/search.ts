/** Search parameters of the address as the state of a page. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

type Search = Readonly<Record<string, unknown>>;

/** The value of a search parameter as text; undefined without one. */
export function textOf(search: Search, name: string): string | undefined {
  const value = search[name];
  return value === undefined || value === null || value === "" ? undefined : String(value);
}

/** The search parameters, and a function that changes some of them; undefined removes one. */
export function useSearchState(): readonly [
  Search,
  (change: Search, options?: { replace?: boolean }) => void,
] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const set = useCallback(
    (change: Search, { replace = true } = {}) =>
      void navigate({
        to: ".",
        search: ((before: Search) =>
          Object.fromEntries(
            Object.entries({ ...before, ...change }).filter(
              ([, value]) => value !== undefined && value !== "",
            ),
          )) as never,
        replace,
        // The page stays: its lists keep their places.
        resetScroll: false,
      }),
    [navigate],
  );
  return [search, set];
}
