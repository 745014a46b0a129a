import type { ReactNode } from "react";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { ListFooter } from "./list-footer.tsx";
import { Loads } from "./panels.tsx";

interface PagedQuery {
  readonly data: unknown;
  readonly error: unknown;
  readonly refetch: () => unknown;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** A table whose rows are loaded in pages. `empty` takes its place while there is no row. */
export function PagedTable<Row>({
  query,
  total,
  empty,
  ...table
}: Omit<DataTableProps<Row>, "footer"> & {
  readonly query: PagedQuery;
  /** null: unknown. */
  readonly total: number | null | undefined;
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
                total={total}
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
