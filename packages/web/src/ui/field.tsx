import { Search } from "lucide-react";
import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes, TextareaHTMLAttributes } from "react";
import { useEffect, useId, useRef, useState } from "react";
import { cx } from "./class-names.ts";

const BOX =
  "rounded-md border border-line-strong bg-surface px-2 text-text placeholder:text-faint disabled:opacity-60 aria-invalid:border-danger";

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input className={cx(BOX, "h-7 w-full min-w-0", className)} {...rest} />;
}

export function TextArea({ className, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea className={cx(BOX, "w-full py-1.5 font-mono", className)} spellCheck={false} {...rest} />;
}

export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={cx(BOX, "h-7 pr-6", className)} {...rest} />;
}

/** A label, its input, a hint, and the error of this field. */
export function Field({
  label,
  hint,
  error,
  required = false,
  children,
}: {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly required?: boolean;
  readonly children: (ids: {
    readonly id: string;
    readonly "aria-describedby": string | undefined;
    readonly "aria-invalid": boolean | undefined;
  }) => ReactNode;
}) {
  const id = useId();
  const noteId = `${id}-note`;
  const note = error ?? hint;
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
        {required && <span className="text-danger"> *</span>}
      </label>
      {children({
        id,
        "aria-describedby": note === undefined ? undefined : noteId,
        "aria-invalid": error === undefined ? undefined : true,
      })}
      {note !== undefined && (
        <p id={noteId} className={cx("text-sm", error === undefined ? "text-muted" : "text-danger")}>
          {note}
        </p>
      )}
    </div>
  );
}

/** A search box that reports what is typed after a short pause. The shortcut "/" moves the focus to it. */
export function SearchBox({
  value,
  onChange,
  label,
  className,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly label: string;
  readonly className?: string;
}) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      onChange(text);
    }, 150);
    return () => clearTimeout(timer);
  }, [text, onChange]);
  return (
    <div className={cx("relative", className)}>
      <Search aria-hidden className="pointer-events-none absolute top-1.5 left-2 size-3.5 text-faint" />
      <Input
        type="search"
        aria-label={label}
        placeholder={label}
        data-search
        value={text}
        onChange={(event) => setText(event.target.value)}
        className="pl-7"
      />
    </div>
  );
}
