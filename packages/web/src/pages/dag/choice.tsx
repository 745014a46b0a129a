import { Select } from "../../ui/field.tsx";

export const RUN_STATES = {
  ...{ success: "Success", failed: "Failed", running: "Running", queued: "Queued" },
} as const;
export const RUN_TYPES = {
  scheduled: "Scheduled",
  manual: "Manual",
  backfill: "Backfill",
  operator_triggered: "By a task",
  asset_triggered: "By an asset",
  signal_triggered: "By a signal",
} as const;

/** A filter with one value, or any. */
export function Choice({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: Readonly<Record<string, string>>;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}) {
  return (
    <Select
      aria-label={label}
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value || undefined)}
    >
      <option value="">{label}: any</option>
      {Object.entries(options).map(([each, name]) => (
        <option key={each} value={each}>
          {name}
        </option>
      ))}
    </Select>
  );
}
