/** A whole line, also if it is too long for a row. */
import { toast } from "sonner";
import { count } from "../time/format.ts";
import { Button } from "../ui/button.tsx";
import { copyText } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { plainText, shownText } from "./log-line.ts";
import type { LogModel } from "./log-model.ts";

export function OneLine({
  model,
  line,
  onClose,
}: {
  readonly model: LogModel;
  readonly line: number;
  readonly onClose: () => void;
}) {
  const found = model.line(line);
  const text = found === undefined ? "" : plainText(found);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      wide
      title={`Line ${count(line + 1)}`}
      description={`${count(text.length)} characters`}
      footer={
        <Button kind="primary" onClick={() => void copyText(text).then(() => toast.success("Line copied"))}>
          Copy line
        </Button>
      }
    >
      <pre className="break-all whitespace-pre-wrap">{text || (found && shownText(found))}</pre>
    </Dialog>
  );
}
