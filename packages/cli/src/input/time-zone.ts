/** `--tz`: an IANA name, or `local` for the time zone of this terminal. */
import { nearest } from "@tradewind/sdk/wording";
import { InvalidArgumentError } from "commander";

export function parseTimeZone(text: string): string {
  if (text.toLowerCase() === "local") return new Intl.DateTimeFormat().resolvedOptions().timeZone;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    const meant = similarZone(text);
    const hint =
      meant === undefined
        ? 'Use an IANA name such as "Europe/Berlin", or "local".'
        : `Did you mean "${meant}"?`;
    throw new InvalidArgumentError(`Unknown time zone. ${hint}`);
  }
}

/** Compares full names and city names. */
function similarZone(text: string): string | undefined {
  const zones = Intl.supportedValuesOf("timeZone");
  const wanted = text.trim().replaceAll(" ", "_").toLowerCase();
  const cityOf = (zone: string) => zone.slice(zone.lastIndexOf("/") + 1).toLowerCase();
  const byName = new Map(zones.map((zone) => [zone.toLowerCase(), zone]));
  const byCity = new Map(zones.map((zone) => [cityOf(zone), zone]));
  const name = nearest(wanted, [...byName.keys()]);
  const city = nearest(cityOf(wanted), [...byCity.keys()]);
  return byCity.get(wanted) ?? (name && byName.get(name)) ?? (city && byCity.get(city));
}
