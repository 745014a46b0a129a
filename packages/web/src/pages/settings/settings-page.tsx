/** Preferences of this browser, and the session. */
import { type Preferences, setPreferences, usePreferences } from "../../app/preferences.ts";
import { useSession } from "../../app/session.tsx";
import { Exact } from "../../time/time.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { Facts, PageBody, PageHeader } from "../../ui/page.tsx";

const ZONES = Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC");

export default function SettingsPage() {
  const { theme, contrast, zone, shortcuts } = usePreferences();
  const session = useSession();
  return (
    <>
      <PageHeader title="Settings" />
      <PageBody className="px-4 pb-6">
        <section className="flex max-w-sm flex-col gap-4">
          <h2>This browser</h2>
          <Field label="Theme">
            {(ids) => (
              <Select
                {...ids}
                value={theme}
                onChange={(event) => setPreferences({ theme: event.target.value as Preferences["theme"] })}
              >
                <option value="system">As the system</option>
                <option value="light">Light</option>
                <option value="dark">Dark</option>
              </Select>
            )}
          </Field>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={contrast}
              onChange={(event) => setPreferences({ contrast: event.target.checked })}
            />
            More contrast, also if the system does not ask for it
          </label>
          <Field
            label="Time zone"
            hint="In which all pages show times. A DAG's schedule has a zone of its own."
          >
            {(ids) => (
              <Select
                {...ids}
                value={zone}
                onChange={(event) => setPreferences({ zone: event.target.value })}
              >
                <option value="UTC">UTC</option>
                <option value="local">Local: {Intl.DateTimeFormat().resolvedOptions().timeZone}</option>
                {ZONES.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </Select>
            )}
          </Field>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={shortcuts}
              onChange={(event) => setPreferences({ shortcuts: event.target.checked })}
            />
            Single letters are keyboard shortcuts
          </label>
        </section>
        <section className="mt-8 flex max-w-xl flex-col gap-3">
          <h2>Session</h2>
          <Facts
            rows={[
              ["Signed in as", session.user],
              ["Role", session.role],
              ["Since", <Exact key="since" at={session.signed_in_at} fallback="with a bearer token" />],
              ["Ends", <Exact key="ends" at={session.expires_at} fallback="never" />],
              ["Server", `Tradewind ${session.version}`],
              ["Installation", <code key="installation">{session.installation}</code>],
            ]}
          />
        </section>
      </PageBody>
    </>
  );
}
