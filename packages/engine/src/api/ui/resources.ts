/** The routes below /ui. */
import { uiStream } from "../live/ui-stream.ts";
import type { Resource } from "../server/context.ts";
import { uiCalendar } from "./ui-calendar.ts";
import { uiDags } from "./ui-dags.ts";
import { uiDatabase } from "./ui-database.ts";
import { uiGrid } from "./ui-grid.ts";
import { uiHome } from "./ui-home.ts";
import { uiLineage } from "./ui-lineage.ts";
import { uiSameError } from "./ui-same-error.ts";
import { uiSearch } from "./ui-search.ts";
import { uiSignalSchedules } from "./ui-signal-schedules.ts";
import { uiSignals } from "./ui-signals.ts";
import { uiTaskLogs } from "./ui-task-logs.ts";
import { uiTimeline } from "./ui-timeline.ts";
import { uiTrends } from "./ui-trends.ts";
import { uiWaiting } from "./ui-waiting.ts";

export const UI_RESOURCES: readonly Resource[] = [
  uiCalendar,
  uiDags,
  uiDatabase,
  uiGrid,
  uiHome,
  uiLineage,
  uiSameError,
  uiSearch,
  uiSignalSchedules,
  uiSignals,
  uiStream,
  uiTaskLogs,
  uiTimeline,
  uiTrends,
  uiWaiting,
];
