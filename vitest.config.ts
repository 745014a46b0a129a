import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["source", "node"] },
  ssr: { resolve: { conditions: ["source", "node"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "test/**/*.test.ts",
      "examples/**/*.test.ts",
    ],
    globalSetup: ["packages/engine/test/support/global-setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Made for two cores: with two workers they idle while tests wait, with four everything is late.
    maxWorkers: 3,
  },
});
