/** A bar of parts of a whole, e.g. the states of the runs of a backfill. Its text names the numbers. */
export function Meter({
  parts,
  total,
  label,
}: {
  readonly parts: readonly { readonly value: number; readonly color: string }[];
  readonly total: number;
  readonly label: string;
}) {
  return (
    <span role="img" aria-label={label} className="flex h-1.5 w-full overflow-hidden rounded-full bg-hover">
      {parts.map(({ value, color }) => (
        <i
          key={color}
          style={{
            width: `${total === 0 ? 0 : Math.min(100, (value / total) * 100)}%`,
            background: `var(${color})`,
          }}
        />
      ))}
    </span>
  );
}
