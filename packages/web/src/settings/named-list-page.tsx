/** A list of named settings: found by name, created, changed, deleted, imported and exported. */
import { Download, Ellipsis, Plus, Trash2, Upload } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { textOf, useSearchState } from "../app/search.ts";
import { Button, IconButton } from "../ui/button.tsx";
import type { Column } from "../ui/data-table.tsx";
import { SearchBox } from "../ui/field.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { PageHeader } from "../ui/page.tsx";
import { type PagedQuery, PagedTable } from "../ui/paged-table.tsx";
import { exportFile } from "./export-file.ts";
import { ImportDialog } from "./import-dialog.tsx";
import type { SettingsKind } from "./kinds.ts";

export interface NamedListProps<Row> {
  readonly kind: SettingsKind;
  readonly title: string;
  readonly facts: ReactNode;
  readonly query: PagedQuery;
  readonly rows: readonly Row[];
  /** "Key", for example. */
  readonly nameHeader: string;
  readonly nameOf: (row: Row) => string;
  /** Between the name and the actions. */
  readonly columns: readonly Column<Row>[];
  readonly empty: ReactNode;
  readonly canDelete?: (row: Row) => boolean;
  /** The dialog that creates one, or changes this one. */
  readonly edit: (row: Row | null, onClose: () => void) => ReactNode;
  readonly remove: (row: Row, onClose: () => void) => ReactNode;
}

type Open<Row> =
  | { readonly kind: "edit"; readonly row: Row | null }
  | { readonly kind: "delete"; readonly row: Row }
  | { readonly kind: "import" };

export function NamedListPage<Row>({
  kind,
  title,
  facts,
  query,
  rows,
  nameHeader,
  nameOf,
  columns,
  empty,
  canDelete,
  edit,
  remove,
}: NamedListProps<Row>) {
  const [search, setSearch] = useSearchState();
  const onFilter = useCallback((q: string) => setSearch({ q }), [setSearch]);
  const [open, setOpen] = useState<Open<Row> | null>(null);
  const close = () => setOpen(null);
  const all = useMemo(
    () => [nameColumn(nameHeader, nameOf, setOpen), ...columns, deleteColumn(nameOf, canDelete, setOpen)],
    [nameHeader, nameOf, columns, canDelete],
  );
  return (
    <>
      <PageHeader
        title={title}
        facts={facts}
        actions={
          <>
            <SearchBox
              label={`Filter by ${nameHeader.toLowerCase()}`}
              value={textOf(search, "q") ?? ""}
              onChange={onFilter}
            />
            <Button kind="primary" onClick={() => setOpen({ kind: "edit", row: null })}>
              <Plus aria-hidden /> New {kind.singular}
            </Button>
            <Menu
              trigger={
                <IconButton label="More actions">
                  <Ellipsis />
                </IconButton>
              }
            >
              <MenuItem onSelect={() => setOpen({ kind: "import" })}>
                <Upload aria-hidden /> Import…
              </MenuItem>
              <MenuItem onSelect={() => void exportFile(kind)}>
                <Download aria-hidden /> Export all
              </MenuItem>
            </Menu>
          </>
        }
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={query}
          empty={empty}
          label={title}
          columns={all}
          rows={rows}
          rowKey={nameOf}
          onOpen={(row) => setOpen({ kind: "edit", row })}
        />
      </div>
      {open?.kind === "edit" && edit(open.row, close)}
      {open?.kind === "delete" && remove(open.row, close)}
      {open?.kind === "import" && <ImportDialog kind={kind} onClose={close} />}
    </>
  );
}

function nameColumn<Row>(
  header: string,
  nameOf: (row: Row) => string,
  onOpen: (open: Open<Row>) => void,
): Column<Row> {
  return {
    id: "name",
    header,
    cell: (row) => (
      <button
        type="button"
        className="font-medium hover:underline"
        onClick={() => onOpen({ kind: "edit", row })}
      >
        {nameOf(row)}
      </button>
    ),
  };
}

function deleteColumn<Row>(
  nameOf: (row: Row) => string,
  canDelete: ((row: Row) => boolean) | undefined,
  onOpen: (open: Open<Row>) => void,
): Column<Row> {
  return {
    id: "actions",
    header: <span className="sr-only">Actions</span>,
    width: "56px",
    cell: (row) => (
      <IconButton
        label={`Delete ${nameOf(row)}`}
        disabled={canDelete?.(row) === false}
        onClick={() => onOpen({ kind: "delete", row })}
      >
        <Trash2 />
      </IconButton>
    ),
  };
}
