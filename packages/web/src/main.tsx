import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/client.ts";
import { applyTheme } from "./app/preferences.ts";
import { router } from "./app/routes.tsx";
import { SignedIn } from "./app/session.tsx";
import "./styles/app.css";

applyTheme();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <SignedIn>
        <RouterProvider router={router} />
      </SignedIn>
    </QueryClientProvider>
  </StrictMode>,
);
