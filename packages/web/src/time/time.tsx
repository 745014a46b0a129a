import { usePreferences } from "../app/preferences.ts";
import { useNow } from "./clock.ts";
import { dateTime, duration, exact, relative } from "./format.ts";

type At = string | number | null | undefined;

export function epoch(at: At): number | null {
  if (at === null || at === undefined) return null;
  return typeof at === "number" ? at : Date.parse(at);
}

/** A time relative to now, with the exact time on hover. */
export function Ago({ at, fallback = "–" }: { readonly at: At; readonly fallback?: string }) {
  const moment = epoch(at);
  if (moment === null) return <span className="text-faint">{fallback}</span>;
  return <RelativeTime at={moment} />;
}

function RelativeTime({ at }: { readonly at: number }) {
  const now = useNow();
  const { zone } = usePreferences();
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at, zone)} className="whitespace-nowrap">
      {relative(at, now)}
    </time>
  );
}

/** The exact time in the chosen zone. */
export function Exact({ at, fallback = "–" }: { readonly at: At; readonly fallback?: string }) {
  const { zone } = usePreferences();
  const moment = epoch(at);
  if (moment === null) return <span className="text-faint">{fallback}</span>;
  return (
    <time dateTime={new Date(moment).toISOString()} title={exact(moment, zone)} className="whitespace-nowrap">
      {dateTime(moment, zone).replace(/\.\d+$/, "")}
    </time>
  );
}

/** How long something took, or has taken until now. */
export function Elapsed({ from, to }: { readonly from: At; readonly to: At }) {
  const start = epoch(from);
  const end = epoch(to);
  if (start === null) return <span className="text-faint">–</span>;
  if (end === null) return <Running from={start} />;
  return <span className="whitespace-nowrap tabular-nums">{duration(end - start)}</span>;
}

function Running({ from }: { readonly from: number }) {
  const now = useNow();
  return <span className="whitespace-nowrap tabular-nums">{duration(now - from)}</span>;
}
