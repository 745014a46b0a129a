/** The routes below /ui. */
import { uiStream } from "../live/ui-stream.ts";
import type { Resource } from "../server/context.ts";
import { uiDags } from "./ui-dags.ts";
import { uiGrid } from "./ui-grid.ts";
import { uiHome } from "./ui-home.ts";
import { uiTaskLogs } from "./ui-task-logs.ts";
import { uiTimeline } from "./ui-timeline.ts";

export const UI_RESOURCES: readonly Resource[] = [uiDags, uiGrid, uiHome, uiStream, uiTaskLogs, uiTimeline];
