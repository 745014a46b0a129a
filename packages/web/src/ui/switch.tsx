import { Switch as Radix } from "radix-ui";

/** Turns something on or off at once. `label` says what, e.g. "Schedule of sales_daily". */
export function Switch({
  label,
  checked,
  onChange,
  disabled = false,
}: {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}) {
  return (
    <Radix.Root
      aria-label={label}
      title={label}
      checked={checked}
      onCheckedChange={onChange}
      disabled={disabled}
      className="relative h-4 w-7 shrink-0 rounded-full border border-line-strong bg-transparent align-middle before:absolute before:-inset-1.5 data-[state=checked]:border-transparent data-[state=checked]:bg-muted disabled:opacity-50"
    >
      <Radix.Thumb className="block size-2.5 translate-x-0.5 rounded-full bg-muted transition-transform duration-100 data-[state=checked]:translate-x-[14px] data-[state=checked]:bg-surface" />
    </Radix.Root>
  );
}
