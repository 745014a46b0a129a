import type { ReactNode } from "react";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { ListFooter } from "./list-footer.tsx";
import { Loads } from "./panels.tsx";

export interface PagedQuery {
  readonly data: { readonly pages: readonly object[] } | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** A table whose rows are loaded in pages. `empty` takes its place while there is no row. */
export function PagedTable<Row>({
  query,
  empty,
  ...table
}: Omit<DataTableProps<Row>, "footer"> & {
  readonly query: PagedQuery;
  readonly empty: ReactNode;
}) {
  return (
    <Loads query={query}>
      {() =>
        table.rows.length === 0 ? (
          empty
        ) : (
          <DataTable
            {...table}
            footer={
              <ListFooter
                shown={table.rows.length}
                total={totalOf(query.data?.pages[0])}
                hasMore={query.hasNextPage}
                isLoading={query.isFetchingNextPage}
                onMore={query.fetchNextPage}
              />
            }
          />
        )
      }
    </Loads>
  );
}

/** Some lists do not say how many rows they have. */
function totalOf(page: object | undefined): number | null {
  return (page as { readonly total_entries?: number | null } | undefined)?.total_entries ?? null;
}
