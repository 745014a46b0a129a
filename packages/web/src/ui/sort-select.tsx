import { Select } from "./field.tsx";

/** The order of a list, by the API's names for it. The first one is the default, which is not part of the address. */
export function SortSelect({
  orders,
  value,
  onChange,
}: {
  readonly orders: Readonly<Record<string, string>>;
  readonly value: string;
  readonly onChange: (order: string | undefined) => void;
}) {
  const [usual] = Object.keys(orders);
  return (
    <Select
      aria-label="Sorted by"
      value={value in orders ? value : usual}
      onChange={(event) => onChange(event.target.value === usual ? undefined : event.target.value)}
    >
      {Object.entries(orders).map(([order, label]) => (
        <option key={order} value={order}>
          {label}
        </option>
      ))}
    </Select>
  );
}
