/** The pages of the rail and of the palette, in their order. */
import {
  Activity,
  Cable,
  CalendarClock,
  Cpu,
  Database,
  FileWarning,
  Home,
  Hourglass,
  type LucideIcon,
  Rows3,
  ScrollText,
  Settings,
  UserCheck,
  Variable,
  Waves,
  Workflow,
} from "lucide-react";

export interface PageEntry {
  readonly to: string;
  readonly label: string;
  readonly icon: LucideIcon;
  /** "g" and this letter open the page. */
  readonly key?: string;
  readonly group: "work" | "operate";
}

/** Only pages that exist. */
export const PAGES: readonly PageEntry[] = [
  { to: "/", label: "Home", icon: Home, key: "h", group: "work" },
  { to: "/dags", label: "DAGs", icon: Workflow, key: "d", group: "work" },
  { to: "/runs", label: "Runs", icon: Rows3, key: "r", group: "work" },
  { to: "/waiting", label: "Waiting", icon: Hourglass, key: "w", group: "work" },
  { to: "/approvals", label: "Approvals", icon: UserCheck, key: "a", group: "work" },
  { to: "/signals", label: "Signals", icon: Activity, key: "s", group: "work" },
  { to: "/assets", label: "Assets", icon: Database, key: "t", group: "work" },
  { to: "/backfills", label: "Backfills", icon: CalendarClock, key: "b", group: "work" },
  { to: "/pools", label: "Pools", icon: Waves, group: "operate" },
  { to: "/connections", label: "Connections", icon: Cable, group: "operate" },
  { to: "/variables", label: "Variables", icon: Variable, group: "operate" },
  { to: "/system", label: "System", icon: Cpu, key: "y", group: "operate" },
  { to: "/errors", label: "Errors", icon: FileWarning, key: "e", group: "operate" },
  { to: "/audit", label: "Audit", icon: ScrollText, group: "operate" },
  { to: "/settings", label: "Settings", icon: Settings, group: "operate" },
];
