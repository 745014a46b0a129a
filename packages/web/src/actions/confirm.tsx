import { type ReactNode, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { type Change, change } from "./change.ts";
import { Twin } from "./twin.tsx";

/** Asks before a change that takes something away. `action` says what will happen: "Delete pool gpu". */
export function Confirm({
  title,
  action,
  children,
  cli,
  onClose,
  ...rest
}: Change & {
  readonly title: string;
  readonly action: string;
  readonly children?: ReactNode;
  readonly cli: string;
  readonly onClose: () => void;
}) {
  const [busy, setBusy] = useState(false);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={title}
      footer={
        <>
          <Twin cli={cli} request={rest.request} />
          <Button onClick={onClose}>Keep</Button>
          <Button
            kind="danger"
            disabled={busy}
            onClick={async () => {
              setBusy(true);
              if (await change(rest)) onClose();
              setBusy(false);
            }}
          >
            {action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
