/** Filters of the table of DAGs, each with the number of DAGs that it would show. */
import type { ReactNode } from "react";
import type { components } from "../../api/schema.gen.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { count } from "../../time/format.ts";
import { Button } from "../../ui/button.tsx";
import { cx } from "../../ui/class-names.ts";
import { Menu, MenuItem } from "../../ui/menu.tsx";

type Facets = components["schemas"]["UiDagFacets"];

/** "paused" is a filter of its own in the API. */
export const SHOWN = ["failing", "late", "running", "paused", "import_error", "never_run"] as const;
export type Shown = (typeof SHOWN)[number];

const LOOKS: Readonly<Record<Shown, { readonly label: string; readonly state: string }>> = {
  failing: { label: "Failing", state: "failed" },
  late: { label: "Late", state: "late" },
  running: { label: "Running", state: "running" },
  paused: { label: "Paused", state: "scheduled" },
  import_error: { label: "Import error", state: "upstream_failed" },
  never_run: { label: "Never run", state: "pending" },
};

export function StateFilters({
  facets,
  value,
  onChange,
}: {
  readonly facets: Facets | undefined;
  readonly value: Shown | undefined;
  readonly onChange: (value: Shown | undefined) => void;
}) {
  return (
    <fieldset className="flex min-w-0 gap-0.5 overflow-x-auto">
      <legend className="sr-only">State</legend>
      <Chip isOn={value === undefined} onClick={() => onChange(undefined)}>
        All
      </Chip>
      {SHOWN.map((each) => (
        <Chip key={each} isOn={each === value} onClick={() => onChange(each === value ? undefined : each)}>
          <StateGlyph state={LOOKS[each].state} size={14} />
          {LOOKS[each].label}
          <span className="tabular-nums text-text">{facets && count(facets[each])}</span>
        </Chip>
      ))}
    </fieldset>
  );
}

function Chip({
  isOn,
  onClick,
  children,
}: {
  readonly isOn: boolean;
  readonly onClick: () => void;
  readonly children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={onClick}
      className={cx(
        "flex h-7 shrink-0 items-center gap-1.5 rounded-md px-2 whitespace-nowrap",
        isOn ? "bg-accent-soft font-medium text-text" : "text-muted hover:bg-hover hover:text-text",
      )}
    >
      {children}
    </button>
  );
}

/** Tags beside the filters; the others are in a menu. */
const TAGS = 8;

export function TagFilters({
  facets,
  tags,
  onTags,
  owner,
  onOwner,
}: {
  readonly facets: Facets | undefined;
  readonly tags: readonly string[];
  readonly onTags: (tags: readonly string[]) => void;
  readonly owner: string | undefined;
  readonly onOwner: (owner: string | undefined) => void;
}) {
  const known = facets?.tags ?? [];
  const first = known.slice(0, TAGS);
  const rest = known.slice(TAGS).filter(({ name }) => !tags.includes(name));
  const shown = [
    ...first,
    ...tags
      .filter((tag) => !first.some(({ name }) => name === tag))
      .map((name) => ({ name, count: known.find((each) => each.name === name)?.count ?? 0 })),
  ];
  const toggle = (tag: string) =>
    onTags(tags.includes(tag) ? tags.filter((each) => each !== tag) : [...tags, tag]);
  return (
    <fieldset className="flex min-w-0 items-center gap-1.5 overflow-x-auto">
      <legend className="sr-only">Tags and owner</legend>
      {shown.map((tag) => (
        <button
          key={tag.name}
          type="button"
          aria-pressed={tags.includes(tag.name)}
          onClick={() => toggle(tag.name)}
          className={cx(
            "h-6 shrink-0 rounded-full border px-2.5 text-sm whitespace-nowrap",
            tags.includes(tag.name)
              ? "border-accent bg-accent-soft"
              : "border-line text-muted hover:border-line-strong hover:text-text",
          )}
        >
          {tag.name} <span className="tabular-nums text-faint">{count(tag.count)}</span>
        </button>
      ))}
      {rest.length > 0 && (
        <Menu
          align="start"
          trigger={
            <Button kind="quiet" className="!h-6 text-sm">
              {rest.length} more {rest.length === 1 ? "tag" : "tags"}
            </Button>
          }
        >
          <Choices options={rest} onChoose={toggle} />
        </Menu>
      )}
      {(facets?.owners.length ?? 0) > 0 && (
        <Menu
          align="start"
          trigger={
            <Button kind={owner === undefined ? "quiet" : "plain"} className="!h-6 text-sm">
              {owner === undefined ? "Any owner" : `Owner ${owner}`}
            </Button>
          }
        >
          {owner !== undefined && <MenuItem onSelect={() => onOwner(undefined)}>Any owner</MenuItem>}
          <Choices options={facets?.owners ?? []} onChoose={onOwner} />
        </Menu>
      )}
    </fieldset>
  );
}

function Choices({
  options,
  onChoose,
}: {
  readonly options: readonly { readonly name: string; readonly count: number }[];
  readonly onChoose: (name: string) => void;
}) {
  return (
    <div className="max-h-80 overflow-auto">
      {options.map((option) => (
        <MenuItem key={option.name} onSelect={() => onChoose(option.name)}>
          <span className="max-w-64 truncate">{option.name}</span>
          <span className="ml-auto pl-4 text-sm text-faint tabular-nums">{count(option.count)}</span>
        </MenuItem>
      ))}
    </div>
  );
}
