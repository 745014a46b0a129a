import { type ReactNode, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { type Change, change } from "./change.ts";
import type { Request } from "./command-text.ts";
import { Twin } from "./twin.tsx";

/** Asks before a change that cannot be undone. `action` says what will happen: "Delete pool gpu". */
export function Confirm({
  title,
  action,
  children,
  cli,
  request,
  onClose,
  ...rest
}: Change & {
  readonly title: string;
  readonly action: string;
  readonly children?: ReactNode;
  readonly cli: string;
  readonly request: Request;
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
          <Twin cli={cli} request={request} />
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
