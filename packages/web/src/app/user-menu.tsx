import { useNavigate } from "@tanstack/react-router";
import { CircleUser } from "lucide-react";
import { toast } from "sonner";
import { api, queryClient } from "../api/client.ts";
import { messageOf } from "../api/problem.ts";
import { IconButton } from "../ui/button.tsx";
import { Menu, MenuItem, MenuLabel, MenuLine, MenuRadio } from "../ui/menu.tsx";
import { type Preferences, setPreferences, usePreferences } from "./preferences.ts";
import { useSession } from "./session.tsx";

const THEMES = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const;

export function UserMenu() {
  const { user, signed_in_at } = useSession();
  const { theme } = usePreferences();
  const navigate = useNavigate();
  return (
    <Menu
      trigger={
        <IconButton label={`Signed in as ${user}`}>
          <CircleUser />
        </IconButton>
      }
    >
      <MenuLabel>{user}</MenuLabel>
      <MenuItem onSelect={() => void navigate({ to: "/settings" })}>Settings</MenuItem>
      <MenuItem onSelect={() => void navigate({ to: "/reference" })}>API reference</MenuItem>
      <MenuLine />
      <MenuLabel>Theme</MenuLabel>
      <MenuRadio
        value={theme}
        onChange={(value) => setPreferences({ theme: value as Preferences["theme"] })}
        options={THEMES}
      />
      <MenuLine />
      <MenuItem
        disabled={signed_in_at === null}
        onSelect={async () => {
          try {
            await api.DELETE("/ui/session");
            // Also reads the session again, which shows the sign-in page.
            await queryClient.resetQueries();
          } catch (error) {
            toast.error(messageOf(error));
          }
        }}
      >
        Sign out
      </MenuItem>
    </Menu>
  );
}
