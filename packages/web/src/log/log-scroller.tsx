/**
 * Draws the visible rows of a list of any length. The position is in rows, not in pixels: a row may be higher than others (wrapped
 * lines), and its height is not known before it is drawn. At its end, the list is aligned to the bottom and stays there while it grows.
 */
import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useCallback,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

const ROW_HEIGHT = 20;
/** Closer to the end than this, the list follows. */
const FOLLOW_PX = 40;
/** Browsers cannot draw higher elements. */
const MOST_PX = 15_000_000;

export interface ScrollerHandle {
  /** Shows a row in the middle. */
  show(row: number): void;
  toEnd(): void;
  focus(): void;
}

interface ScrollerProps {
  readonly ref: Ref<ScrollerHandle>;
  readonly count: number;
  readonly row: (index: number) => ReactNode;
  readonly label: string;
  /** Rows may be higher than others. */
  readonly wraps: boolean;
  readonly follows: boolean;
  readonly onFollow: (follows: boolean) => void;
  readonly onVisible: (first: number, last: number) => void;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly onCopy: (event: React.ClipboardEvent) => void;
  readonly className?: string;
  readonly children?: ReactNode;
}

export function LogScroller({
  ref,
  count,
  row,
  label,
  wraps,
  follows,
  onFollow,
  onVisible,
  onKeyDown,
  onCopy,
  className,
  children,
}: ScrollerProps) {
  const scroller = useRef<HTMLElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(600);
  /** The first row, with a fraction. */
  const [top, setTop] = useState(0);
  /** Where the scroll bar was put by this component. */
  const own = useRef(-1);
  const goesDown = useRef(false);
  const page = Math.ceil(height / ROW_HEIGHT) + 1;
  // With rows of any height, the last one can be moved up to the top: it may be higher than the window.
  const whole = count * ROW_HEIGHT;
  const drawn = Math.min(MOST_PX, wraps ? whole + height : whole);
  const most = Math.max(0, wraps ? count - 1 : count - height / ROW_HEIGHT);
  const perPx = drawn <= height ? 1 / ROW_HEIGHT : most / (drawn - height);

  const first = follows ? Math.max(0, count - page) : Math.min(Math.floor(top), Math.max(0, count - 1));
  const last = Math.min(count, first + page);

  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);

  const place = useCallback((px: number) => {
    const element = scroller.current!;
    element.scrollTop = px;
    own.current = element.scrollTop;
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the bar follows each change of the length
  useLayoutEffect(() => {
    if (follows) place(drawn);
  }, [follows, drawn, height, place]);

  useLayoutEffect(() => {
    const rows = layer.current!;
    const fits = rows.offsetHeight <= height;
    rows.parentElement!.style.justifyContent = follows && !fits ? "flex-end" : "";
    // A fraction of a row is as many pixels as the row is high.
    const high = rows.firstElementChild?.getBoundingClientRect().height ?? ROW_HEIGHT;
    const above = follows ? 0 : Math.max(0, top - first) * high;
    rows.style.transform = above > 0 ? `translateY(${-above}px)` : "";
    const isEnd = last === count && rows.offsetHeight - above <= height + FOLLOW_PX;
    if (goesDown.current && !follows && isEnd) onFollow(true);
    goesDown.current = false;
  });

  useLayoutEffect(() => onVisible(first, last), [first, last, onVisible]);

  const onScroll = () => {
    const element = scroller.current!;
    const at = element.scrollTop;
    if (Math.abs(at - own.current) < 1) return;
    if (follows) {
      if (at >= own.current) return;
      // The rows at the bottom may be higher than others: the one at the top of the window stays where it is.
      const shown = topRow(layer.current!, first) - (own.current - at) / ROW_HEIGHT;
      onFollow(false);
      setTop(Math.max(0, shown));
      place(Math.max(0, shown) / perPx);
      return;
    }
    own.current = at;
    const next = Math.min(Math.max(0, at * perPx), Math.max(0, count - 1));
    goesDown.current = next > top;
    setTop(next);
  };

  const show = (to: number) => {
    const next = Math.min(Math.max(0, to - Math.floor(height / ROW_HEIGHT / 2)), most);
    onFollow(false);
    setTop(next);
    place(next / perPx);
  };
  useImperativeHandle(ref, () => ({
    show,
    toEnd: () => onFollow(true),
    focus: () => scroller.current?.focus(),
  }));

  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onCopy={onCopy}
      className={`relative min-h-0 flex-1 overflow-auto overscroll-contain outline-none [overflow-anchor:none] focus-visible:outline-2 ${className ?? ""}`}
    >
      <div style={{ height: Math.max(drawn, 1) }} className="min-w-full">
        <div
          style={{ height }}
          className={`sticky top-0 flex min-w-full flex-col [overflow-y:clip] ${wraps ? "w-full" : "w-max"}`}
        >
          <div ref={layer}>
            {Array.from({ length: Math.max(0, last - first) }, (_, at) => row(first + at))}
          </div>
        </div>
      </div>
      {children}
    </section>
  );
}

/** The row at the top of the window, with the fraction of it that is above. */
function topRow(layer: HTMLElement, first: number): number {
  const edge = layer.parentElement!.getBoundingClientRect().top;
  for (const [at, element] of [...layer.children].entries()) {
    const { bottom, height } = element.getBoundingClientRect();
    if (bottom > edge) return first + at + Math.min(1, 1 - (bottom - edge) / height);
  }
  return first;
}
