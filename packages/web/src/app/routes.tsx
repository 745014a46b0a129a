/** Which page belongs to which address. Each page is loaded when it is first opened. */
import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from "@tanstack/react-router";
import { BASE } from "../api/client.ts";
import { Failure } from "../ui/panels.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Shell });

type Search = Readonly<Record<string, unknown>>;

/** Every filter and view is a search parameter, so that any state of a page has an address. */
function page<Path extends string>(path: Path, load: () => Promise<{ default: () => React.ReactNode }>) {
  return createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: (search: Record<string, unknown>): Search => search,
    component: lazyRouteComponent(load),
  });
}

const routes = [
  page("/", () => import("../pages/home/home-page.tsx")),
  page("/dags/$dagId", () => import("../pages/dag/dag-page.tsx")),
  page("/runs", () => import("../pages/runs/runs-page.tsx")),
  page("/dags/$dagId/runs/$runId", () => import("../pages/run/run-page.tsx")),
  page("/dags/$dagId/runs/$runId/tasks/$taskId", () => import("../pages/task/task-page.tsx")),
  page("/dags", () => import("../pages/dags/dags-page.tsx")),
  page("/waiting", () => import("../pages/waiting/waiting-page.tsx")),
  page("/approvals", () => import("../pages/approvals/approvals-page.tsx")),
  page("/assets", () => import("../pages/assets/assets-page.tsx")),
  page("/assets/$assetId", () => import("../pages/assets/asset-page.tsx")),
  page("/pools", () => import("../pages/pools/pools-page.tsx")),
  page("/variables", () => import("../pages/variables/variables-page.tsx")),
  page("/errors", () => import("../pages/errors/errors-page.tsx")),
  page("/audit", () => import("../pages/audit/audit-page.tsx")),
  page("/connections", () => import("../pages/connections/connections-page.tsx")),
  page("/system", () => import("../pages/system/system-page.tsx")),
  page("/signals", () => import("../pages/signals/signals-page.tsx")),
  page("/backfills", () => import("../pages/backfills/backfills-page.tsx")),
  page("/backfills/$backfillId", () => import("../pages/backfills/backfill-page.tsx")),
  page("/reference", () => import("../pages/reference/reference-page.tsx")),
  page("/settings", () => import("../pages/settings/settings-page.tsx")),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: BASE.replace(/\/$/, "") || "/",
  defaultPreload: "intent",
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) => <Failure error={error} onRetry={reset} />,
  defaultNotFoundComponent: () => (
    <div className="flex flex-col items-start gap-2 p-6">
      <h1>There is no such page</h1>
      <Link to="/" className="link">
        Home
      </Link>
    </div>
  ),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
