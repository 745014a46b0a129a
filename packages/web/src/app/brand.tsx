export function Brand() {
  return (
    <span className="flex items-center gap-2 text-base font-semibold tracking-tight">
      <svg
        aria-hidden
        width="20"
        height="20"
        viewBox="0 0 24 24"
        fill="none"
        stroke="var(--accent)"
        strokeWidth="2"
        strokeLinecap="round"
      >
        <path d="M3 8h10.5a2.75 2.75 0 1 0-2.6-3.6" />
        <path d="M3 12h15.2a2.9 2.9 0 1 1-2.75 3.8" />
        <path d="M3 16h7.2a2.2 2.2 0 1 1-2.1 2.9" />
      </svg>
      Tradewind
    </span>
  );
}
