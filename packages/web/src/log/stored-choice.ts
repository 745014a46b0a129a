/** A choice that this browser keeps. */
import { useState } from "react";

export function useStored(name: string, usual: boolean): readonly [boolean, (value: boolean) => void] {
  const key = `tradewind.${name}`;
  const [value, setValue] = useState(() => {
    try {
      const stored = localStorage.getItem(key);
      return stored === null ? usual : stored === "1";
    } catch {
      return usual;
    }
  });
  const set = (next: boolean) => {
    setValue(next);
    try {
      localStorage.setItem(key, next ? "1" : "0");
    } catch {
      // Storage is disabled: the choice lasts until the page is closed.
    }
  };
  return [value, set];
}
