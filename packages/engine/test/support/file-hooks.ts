/** Vitest runs this before each test file. */
import { afterAll, afterEach } from "vitest";
import { doAfter } from "./after-file.ts";

afterEach(() => doAfter("test"));
afterAll(() => doAfter("file"));
