/** The frame around every page: rail, top bar, palette, shortcuts, and the focus when the page changes. */
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Menu as MenuIcon, Search } from "lucide-react";
import { Suspense, useEffect, useRef, useState } from "react";
import { Toaster } from "sonner";
import { useReload } from "../live/reload.ts";
import { IconButton } from "../ui/button.tsx";
import { cx } from "../ui/class-names.ts";
import { Loading } from "../ui/panels.tsx";
import { Brand } from "./brand.tsx";
import { PAGES } from "./pages.ts";
import { Palette } from "./palette.tsx";
import { usePreferences } from "./preferences.ts";
import { RailCounts } from "./rail-counts.tsx";
import { useSession } from "./session.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { LiveStatus, ZoneSwitch } from "./top-controls.tsx";
import { UserMenu } from "./user-menu.tsx";

export function Shell() {
  const [paletteOpen, setPaletteOpen] = useState(false);
  const [railOpen, setRailOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the focus moves whenever the path changes
  useEffect(() => {
    setRailOpen(false);
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
  }, [path]);
  const { theme } = usePreferences();
  // The numbers of the rail, on every page.
  useReload("home", ["/ui/home"]);
  return (
    <div className="flex h-full">
      <button
        type="button"
        onClick={() => main.current?.focus()}
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-surface focus:p-2"
      >
        Skip to the content
      </button>
      <Rail open={railOpen} onClose={() => setRailOpen(false)} />
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex h-11 shrink-0 items-center gap-2 border-b border-line px-4 max-md:px-2">
          <IconButton
            label="Pages"
            className="md:hidden"
            aria-expanded={railOpen}
            onClick={() => setRailOpen(!railOpen)}
          >
            <MenuIcon />
          </IconButton>
          <Breadcrumbs path={path} />
          <button
            type="button"
            onClick={() => setPaletteOpen(true)}
            className="ml-auto flex h-7 items-center gap-2 rounded-md border border-line bg-surface px-2 text-faint hover:border-line-strong md:w-64"
          >
            <Search aria-hidden className="size-3.5" />
            <span className="max-md:sr-only">Search or jump to…</span>
            <kbd className="ml-auto text-sm max-md:hidden">{isMac() ? "⌘K" : "Ctrl K"}</kbd>
          </button>
          <ZoneSwitch />
          <LiveStatus />
          <UserMenu />
        </div>
        <main
          ref={main}
          id="main"
          tabIndex={-1}
          className="flex min-h-0 flex-1 flex-col overflow-hidden outline-none"
        >
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <Palette open={paletteOpen} onOpenChange={setPaletteOpen} />
      <Shortcuts onPalette={() => setPaletteOpen(true)} />
      <Toaster position="bottom-right" theme={theme} closeButton />
    </div>
  );
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent);
}

function Rail({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const { version } = useSession();
  return (
    <>
      {open && <div aria-hidden onClick={onClose} className="fixed inset-0 z-30 bg-black/40 md:hidden" />}
      <nav
        aria-label="Pages"
        className={cx(
          "flex w-48 shrink-0 flex-col gap-px overflow-y-auto border-r border-line bg-raised px-2 py-2.5",
          "max-md:fixed max-md:inset-y-0 max-md:left-0 max-md:z-40",
          !open && "max-md:hidden",
        )}
      >
        <Link to="/" className="px-2 pt-1 pb-3 no-underline">
          <Brand />
        </Link>
        {PAGES.map((page, index) => (
          <div key={page.to} className="contents">
            {page.group === "operate" && PAGES[index - 1]?.group === "work" && (
              <p className="mx-2 mt-3 mb-1 text-sm text-faint">Operate</p>
            )}
            <Link
              to={page.to}
              activeOptions={{ exact: page.to === "/", includeSearch: false }}
              className="flex h-7 shrink-0 items-center gap-2.5 rounded-md px-2 text-muted no-underline hover:bg-hover hover:text-text"
              activeProps={{ className: "bg-accent-soft !text-text font-medium", "aria-current": "page" }}
            >
              <page.icon aria-hidden className="size-4 shrink-0" />
              {page.label}
              <RailCounts page={page.to} />
            </Link>
          </div>
        ))}
        <p className="mt-auto px-2 pt-4 text-sm text-faint">Tradewind {version}</p>
      </nav>
    </>
  );
}

/** Names of parents that are pages of their own, from the path. */
function Breadcrumbs({ path }: { readonly path: string }) {
  const page = PAGES.find(({ to }) => to !== "/" && (path === to || path.startsWith(`${to}/`)));
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const crumbs: { readonly label: string; readonly to?: string }[] = [];
  if (path === "/") crumbs.push({ label: "Home" });
  else if (parts[0] === "dags" && parts.length > 1) {
    const dag = `/dags/${encodeURIComponent(parts[1]!)}`;
    crumbs.push({ label: "DAGs", to: "/dags" }, { label: parts[1]!, to: dag });
    if (parts[2] === "runs" && parts[3] !== undefined) {
      const run = `${dag}/runs/${encodeURIComponent(parts[3])}`;
      crumbs.push({ label: parts[3], to: run });
      if (parts[5] !== undefined) crumbs.push({ label: parts[5] });
    }
  } else {
    crumbs.push({
      label: page?.label ?? (path === "/reference" ? "API reference" : parts[0]) ?? "",
      to: `/${parts[0] ?? ""}`,
    });
    if (parts[1] !== undefined) crumbs.push({ label: parts.slice(1).join("/") });
  }
  return (
    <ol aria-label="Path" className="flex min-w-0 items-center gap-1.5 whitespace-nowrap">
      {crumbs.map(({ label, to }, index) => (
        <li
          key={to ?? label}
          className={cx(
            "flex min-w-0 gap-1.5",
            // A long run id is cut off, not the short name of its DAG.
            index < crumbs.length - 1 && "max-w-1/2 shrink-0",
            index < crumbs.length - 2 && "max-md:hidden",
          )}
        >
          {index > 0 && <span className="text-faint max-md:hidden">/</span>}
          {to === undefined || index === crumbs.length - 1 ? (
            <span className="truncate font-medium">{label}</span>
          ) : (
            <Link to={to} className="truncate text-muted hover:text-text">
              {label}
            </Link>
          )}
        </li>
      ))}
    </ol>
  );
}
