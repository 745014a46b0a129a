/** Where the focus goes when a dialog closes. Dialogs are opened by state, so Radix does not know the button that opened them. */
import { useRef } from "react";

/** The last element that had the focus outside of dialogs and menus: a menu is gone when its dialog opens. */
let last: HTMLElement | null = null;

document.addEventListener("focusin", ({ target }) => {
  if (target instanceof HTMLElement && target.closest("[role=dialog], [role=menu]") === null) last = target;
});

/** For `onCloseAutoFocus`: back to what had the focus before, or to the content if that is no longer on the page. */
export function useFocusReturn(isOpen: boolean): (event: Event) => void {
  const opener = useRef<HTMLElement | null>(null);
  const wasOpen = useRef(false);
  if (isOpen && !wasOpen.current) opener.current = last;
  wasOpen.current = isOpen;
  return (event) => {
    event.preventDefault();
    const before = opener.current;
    if (before?.isConnected) before.focus();
    else document.getElementById("main")?.focus({ preventScroll: true });
  };
}
