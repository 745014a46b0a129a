/** Downloads all settings of a kind as the file that an import reads. */
import { toast } from "sonner";
import { send } from "../actions/api-call.ts";
import { messageOf } from "../api/problem.ts";
import { count } from "../time/format.ts";
import { formatFile, type SettingsKind } from "./kinds.ts";

const PAGE = 100;

export async function exportFile(kind: SettingsKind): Promise<void> {
  try {
    const { count: written, hidden, text } = formatFile(kind, await readAll(kind));
    download(`${kind.collection}.json`, text);
    const left =
      kind.leftOut === null || (hidden === 0 && kind.collection === "variables")
        ? ""
        : `, without ${kind.leftOut}`;
    toast.success(`Exported ${count(written)} ${written === 1 ? kind.singular : kind.collection}${left}`);
  } catch (error) {
    toast.error(messageOf(error));
  }
}

async function readAll({ collection }: SettingsKind): Promise<Readonly<Record<string, unknown>>[]> {
  const all: Readonly<Record<string, unknown>>[] = [];
  for (;;) {
    const page = await send<Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>>({
      method: "GET",
      path: `/api/v2/${collection}?limit=${PAGE}&offset=${all.length}`,
    });
    const rows = page[collection] ?? [];
    all.push(...rows);
    if (rows.length < PAGE) return all;
  }
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
