import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { IconButton } from "./button.tsx";
import { cx } from "./class-names.ts";
import { useFocusReturn } from "./focus-return.ts";

export interface DialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly description?: ReactNode;
  readonly children: ReactNode;
  /** Buttons, the one that acts last. */
  readonly footer?: ReactNode;
  readonly wide?: boolean;
}

export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  footer,
  wide = false,
}: DialogProps) {
  const returnFocus = useFocusReturn(open);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          onOpenAutoFocus={(event) => {
            const dialog = event.currentTarget as HTMLElement;
            const field = dialog.querySelector<HTMLElement>("input, select, textarea");
            if (field === null) return;
            event.preventDefault();
            field.focus();
          }}
          onCloseAutoFocus={returnFocus}
          className={cx(
            "fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[min(calc(100vw-16px),var(--w))] -translate-x-1/2 flex-col rounded-lg border border-line bg-surface shadow-lg",
            wide ? "[--w:860px]" : "[--w:560px]",
          )}
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
        >
          <header className="flex items-start gap-2 border-b border-line px-4 py-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
              {description !== undefined && (
                <Radix.Description className="text-muted">{description}</Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <IconButton label="Close">
                <X />
              </IconButton>
            </Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-auto px-4 py-3">{children}</div>
          {footer !== undefined && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-4 py-3">
              {footer}
            </footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
