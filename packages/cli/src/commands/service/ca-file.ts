import { readFileSync } from "node:fs";
import { usageError } from "../../errors.ts";

export function readCa(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(
      `cannot read the CA file ${path}: ${(error as Error).message}.`,
      "give a PEM file with --ca or TRADEWIND_CA",
    );
  }
}
