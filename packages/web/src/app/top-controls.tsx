/** The time zone and the state of the live stream, in the top bar. */
import { ChevronDown } from "lucide-react";
import { useLiveState } from "../live/live.ts";
import { Button } from "../ui/button.tsx";
import { Menu, MenuLabel, MenuRadio } from "../ui/menu.tsx";
import { setPreferences, usePreferences } from "./preferences.ts";

const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function ZoneSwitch() {
  const { zone } = usePreferences();
  const options = [
    { value: "UTC", label: "UTC" },
    { value: "local", label: `Local: ${OWN}` },
    ...(zone !== "UTC" && zone !== "local" ? [{ value: zone, label: zone }] : []),
  ];
  return (
    <Menu
      trigger={
        <Button aria-label={`Time zone: ${zone}`} className="max-sm:hidden">
          {zone === "local" ? OWN : zone}
          <ChevronDown aria-hidden />
        </Button>
      }
    >
      <MenuLabel>Times are shown in</MenuLabel>
      <MenuRadio value={zone} onChange={(value) => setPreferences({ zone: value })} options={options} />
    </Menu>
  );
}

const WORDS = { live: "Live", connecting: "Connecting", offline: "Offline" } as const;
const COLORS = { live: "bg-success", connecting: "bg-queued", offline: "bg-failed" } as const;

export function LiveStatus() {
  const state = useLiveState();
  return (
    <span role="status" className="flex items-center gap-1.5 text-muted" title={WORDS[state]}>
      <span aria-hidden className={`size-2 rounded-full ${COLORS[state]}`} />
      <span className="max-sm:sr-only">{WORDS[state]}</span>
    </span>
  );
}
