import { Link } from "@tanstack/react-router";
import { pagePath } from "../../app/paths.ts";
import { Meter } from "../../ui/meter.tsx";
import type { Home } from "./home.ts";

export function PoolUse({ home }: { readonly home: Home }) {
  return (
    <section aria-label="Pools">
      <h2 className="border-b border-line pb-1.5">
        <Link to={pagePath("pools")} className="hover:underline">
          Pools
        </Link>
      </h2>
      <ul>
        {home.pools.map(({ name, slots, occupied }) => (
          <li
            key={name}
            className="grid grid-cols-[minmax(0,1fr)_80px_88px] items-center gap-3 border-b border-line py-1.5"
          >
            <span className="truncate">{name}</span>
            <Meter
              label={`${occupied} of ${slots} slots of ${name} are used`}
              total={slots}
              parts={[{ value: occupied, color: occupied >= slots ? "--s-retry" : "--s-running" }]}
            />
            <span className="num text-sm text-muted">
              {occupied} of {slots < 0 ? "∞" : slots}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
