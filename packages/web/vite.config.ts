import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The server that `npm run dev:web` passes requests to. */
const API = "http://127.0.0.1:8080";

export default defineConfig({
  root: import.meta.dirname,
  // The server writes a <base> element into the page: all addresses are relative to it.
  base: "./",
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2023",
    modulePreload: { polyfill: false },
    // A data: address is not allowed by the content security policy for scripts, and saves little for the rest.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": API, "/ui": API, "/openapi.json": API } },
});
