/** What a user has chosen for this browser: theme, time zone, keyboard shortcuts. Other tabs follow. */
import { useSyncExternalStore } from "react";
import type { Zone } from "../time/format.ts";

export interface Preferences {
  readonly theme: "system" | "light" | "dark";
  /** More contrast also if the system asks for no more. */
  readonly contrast: boolean;
  /** "UTC", "local" or an IANA name. */
  readonly zone: Zone;
  /** Single letters as shortcuts. */
  readonly shortcuts: boolean;
}

const KEY = "tradewind.preferences";
const DEFAULTS: Preferences = { theme: "system", contrast: false, zone: "UTC", shortcuts: true };

const moreContrast = matchMedia("(prefers-contrast: more)");

let current = read();
const listeners = new Set<() => void>();

function read(): Preferences {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return DEFAULTS;
  }
}

function changed(): void {
  applyTheme();
  for (const each of listeners) each();
}

export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
  changed();
}

export function applyTheme(): void {
  if (current.theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = current.theme;
  document.documentElement.dataset["contrast"] = current.contrast || moreContrast.matches ? "more" : "usual";
}

export function preferences(): Preferences {
  return current;
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

moreContrast.addEventListener("change", changed);

window.addEventListener("storage", ({ key }) => {
  if (key !== KEY) return;
  current = read();
  changed();
});
