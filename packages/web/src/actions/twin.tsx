/** The same action for a terminal: as a command, and as an HTTP request. */
import { SquareTerminal } from "lucide-react";
import { toast } from "sonner";
import { BASE } from "../api/client.ts";
import { IconButton } from "../ui/button.tsx";
import { copyText } from "../ui/copy.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { curlOf, type Request } from "./command-text.ts";

export function Twin({ cli, request }: { readonly cli: string; readonly request: Request }) {
  const copy = async (text: string) => {
    await copyText(text);
    toast.success("Copied");
  };
  return (
    <Menu
      trigger={
        <IconButton label="Copy as command">
          <SquareTerminal />
        </IconButton>
      }
    >
      <MenuItem onSelect={() => void copy(cli)}>Copy as CLI</MenuItem>
      <MenuItem onSelect={() => void copy(curlOf(request, `${location.origin}${BASE.replace(/\/$/, "")}`))}>
        Copy as curl
      </MenuItem>
    </Menu>
  );
}
