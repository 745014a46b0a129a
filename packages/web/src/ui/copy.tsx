import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./button.tsx";

/** Also on pages without a secure context, where browsers have no clipboard object. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  (document.querySelector("[role=dialog]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <IconButton
      label={copied ? "Copied" : label}
      onClick={async () => {
        await copyText(text);
        setCopied(true);
        setTimeout(() => setCopied(false), 1_500);
      }}
    >
      {copied ? <Check /> : <Copy />}
    </IconButton>
  );
}

/** A command or an id, with a button that copies it. */
export function Copyable({ text }: { readonly text: string }) {
  return (
    <div className="flex min-w-0 items-center gap-1 rounded-md border border-line bg-raised pr-0.5 pl-2.5">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <code tabIndex={0} className="min-w-0 flex-1 overflow-x-auto py-1 whitespace-pre">
        {text}
      </code>
      <CopyButton text={text} />
    </div>
  );
}
