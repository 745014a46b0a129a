import type { ButtonHTMLAttributes, Ref } from "react";
import { cx } from "./class-names.ts";

type Kind = "plain" | "primary" | "danger" | "quiet";

const KINDS: Readonly<Record<Kind, string>> = {
  plain: "border-line-strong bg-surface text-text hover:bg-hover",
  primary: "border-transparent bg-accent text-on-accent hover:brightness-110",
  danger: "border-line-strong bg-surface text-danger hover:bg-danger-soft",
  quiet: "border-transparent text-muted hover:bg-hover hover:text-text",
};

const SHAPE =
  "inline-flex h-7 shrink-0 items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap no-underline disabled:opacity-50 [&_svg]:size-3.5 [&_svg]:shrink-0";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: Kind;
  readonly ref?: Ref<HTMLButtonElement>;
}

/** Its text says what will happen: "Clear 14 tasks". */
export function Button({ kind = "plain", className, type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={buttonClass(kind, className)} {...rest} />;
}

/** For links that look like buttons. */
export function buttonClass(kind: Kind = "plain", className?: string): string {
  return cx(SHAPE, "px-2.5", KINDS[kind], className);
}

/** A square button with an icon; `label` is its name for screen readers and its tooltip. */
export function IconButton({
  label,
  className,
  ...rest
}: Omit<ButtonProps, "title"> & { readonly label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={cx(SHAPE, "w-7", KINDS.quiet, className)}
      {...rest}
    />
  );
}
