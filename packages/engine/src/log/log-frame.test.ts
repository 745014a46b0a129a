import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeFrame, FrameReader, type LogFrame } from "./log-frame.ts";

const frame: fc.Arbitrary<LogFrame> = fc.record({
  source: fc.constantFrom("task", "stdout", "stderr"),
  level: fc.constantFrom("debug", "info", "warn", "error"),
  time: fc.nat(),
  payload: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
});

test("reads the written frames for any chunking of the pipe", () => {
  fc.assert(
    fc.property(fc.array(frame), fc.integer({ min: 1, max: 30 }), (frames, size) => {
      const bytes = Buffer.concat(frames.map(encodeFrame));
      const found: LogFrame[] = [];
      const reader = new FrameReader((one) => found.push({ ...one, payload: Buffer.from(one.payload) }));
      for (let at = 0; at < bytes.length; at += size)
        expect(reader.push(bytes.subarray(at, at + size))).toBe(true);
      expect(found).toEqual(frames);
      expect(reader.consumed).toBe(bytes.length);
    }),
  );
});

test("reports bytes that are no frames once, and then ignores them", () => {
  const reader = new FrameReader(() => {
    throw new Error("this is no frame");
  });
  const junk = Buffer.alloc(100, 0xff);
  expect(reader.push(junk)).toBe(false);
  expect(reader.push(junk)).toBe(true);
  expect(reader.consumed).toBe(200);
});
