/**
 * A table of rows: sorted by the server, rows drawn only while they are visible, keyboard and selection. The state of sorting and
 * filters belongs to the page's URL.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { cx } from "./class-names.ts";
import { useRowKeys } from "./row-keys.ts";
import { useRowSelection } from "./row-selection.ts";
import { SelectionBar } from "./selection-bar.tsx";

export interface Column<Row> {
  readonly id: string;
  readonly header: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** The name by which the API sorts. */
  readonly sort?: string;
  readonly numeric?: boolean;
  /** As a CSS width, e.g. "120px"; the others share what is left. */
  readonly width?: string;
  /** Hidden below this width of the window. */
  readonly from?: keyof typeof FROM;
}

export interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  /** As the API expects it: "-started_at". */
  readonly orderBy?: string | undefined;
  readonly onOrderBy?: (orderBy: string) => void;
  readonly onOpen?: (row: Row) => void;
  readonly isOpen?: (row: Row) => boolean;
  /** Makes rows selectable: what can be done with the selected ones. */
  readonly bulk?: (rows: readonly Row[]) => ReactNode;
  /** A letter and what it does with the row of the focus. */
  readonly keys?: Readonly<Record<string, (row: Row) => void>>;
  readonly rowClass?: (row: Row) => string | false | undefined;
  /** Height of a row in pixels. */
  readonly rowHeight?: number;
  /** Widths are those of the columns, with any content. */
  readonly fixed?: boolean;
  /** Below the last row: "load more", for example. */
  readonly footer?: ReactNode;
}

const FROM = {
  sm: "max-sm:hidden",
  md: "max-md:hidden",
  lg: "max-lg:hidden",
  xl: "max-xl:hidden",
  "2xl": "max-[1400px]:hidden",
} as const;

export function DataTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  orderBy,
  onOrderBy,
  onOpen,
  isOpen,
  bulk,
  keys,
  rowClass,
  rowHeight = 32,
  fixed = false,
  footer,
}: DataTableProps<Row>) {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 16,
    getItemKey: (index) => rowKey(rows[index]!),
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const selection = useRowSelection(rows, rowKey);
  const bar = useRef<HTMLDivElement>(null);
  useRowKeys(scroller, (key, index) => {
    const row = rows[index];
    const act = keys?.[key];
    if (row !== undefined && act !== undefined) act(row);
    else if (bulk === undefined) return false;
    else if (row !== undefined && /^x$/i.test(key)) selection.toggle(index, key === "X");
    else if (key === "a") bar.current?.querySelector("button")?.focus();
    else return false;
    return true;
  });
  const isSelected = bulk !== undefined && selection.rows.length > 0;
  const all = isSelected && selection.rows.length === rows.length;
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      className="h-full overflow-auto outline-none"
    >
      <table
        className={cx("w-full border-separate border-spacing-0", fixed && "table-fixed")}
        aria-rowcount={rows.length}
      >
        <thead>
          <tr>
            {bulk && (
              <th className={HEAD} style={{ width: "34px" }}>
                <input
                  type="checkbox"
                  aria-label="Select all rows"
                  checked={all}
                  ref={(box) => {
                    if (box) box.indeterminate = isSelected && !all;
                  }}
                  onChange={() => selection.all(!all)}
                />
              </th>
            )}
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                style={column.width === undefined ? undefined : { width: column.width }}
                className={cx(HEAD, column.numeric && "text-right", column.from && FROM[column.from])}
                aria-sort={sortOf(column, orderBy)}
              >
                {column.sort !== undefined && onOrderBy ? (
                  <SortButton name={column.sort} orderBy={orderBy} onOrderBy={onOrderBy}>
                    {column.header}
                  </SortButton>
                ) : (
                  column.header
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr aria-hidden style={{ height: above }} />}
          {items.map(({ index, key }) => {
            const row = rows[index]!;
            return (
              <tr
                key={key}
                data-row={index}
                aria-rowindex={index + 1}
                aria-selected={isOpen ? isOpen(row) : undefined}
                onClick={(event) => {
                  if (onOpen && !(event.target as Element).closest("a, button, input, label")) onOpen(row);
                }}
                className={cx(
                  "group hover:bg-hover",
                  onOpen && "cursor-default",
                  (isOpen?.(row) || (bulk && selection.has(row))) && "bg-accent-soft",
                  rowClass?.(row),
                )}
              >
                {bulk && (
                  <td className={CELL}>
                    <input
                      type="checkbox"
                      aria-label="Select this row"
                      checked={selection.has(row)}
                      onChange={(event) =>
                        selection.toggle(index, (event.nativeEvent as MouseEvent).shiftKey)
                      }
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td
                    key={column.id}
                    style={{ height: rowHeight }}
                    className={cx(
                      CELL,
                      column.numeric && "text-right tabular-nums",
                      column.from && FROM[column.from],
                    )}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {below > 0 && <tr aria-hidden style={{ height: below }} />}
        </tbody>
      </table>
      {footer !== undefined && <div className="px-2.5 py-2">{footer}</div>}
      {isSelected && (
        <SelectionBar ref={bar} selected={selection.rows.length} onClear={() => selection.all(false)}>
          {bulk(selection.rows)}
        </SelectionBar>
      )}
    </section>
  );
}

const HEAD =
  "sticky top-0 z-10 h-7 border-b border-line bg-bg px-2.5 text-left text-sm font-medium whitespace-nowrap text-muted first:pl-4 last:pr-4";
const CELL = "border-b border-line px-2.5 first:pl-4 last:pr-4";

function sortOf<Row>({ sort }: Column<Row>, orderBy: string | undefined) {
  if (sort === undefined || orderBy === undefined) return undefined;
  if (orderBy === sort) return "ascending";
  return orderBy === `-${sort}` ? "descending" : undefined;
}

function SortButton({
  name,
  orderBy,
  onOrderBy,
  children,
}: {
  readonly name: string;
  readonly orderBy: string | undefined;
  readonly onOrderBy: (orderBy: string) => void;
  readonly children: ReactNode;
}) {
  const Icon = orderBy === name ? ArrowUp : orderBy === `-${name}` ? ArrowDown : null;
  return (
    <button
      type="button"
      className="inline-flex items-center gap-1 hover:text-text"
      onClick={() => onOrderBy(orderBy === `-${name}` ? name : `-${name}`)}
    >
      {children}
      {Icon && <Icon aria-hidden className="size-3" />}
    </button>
  );
}
