/** Which files do not load, and why? */
import { $api } from "../../api/client.ts";
import { useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { cx } from "../../ui/class-names.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { CodeFrame } from "./code-frame.tsx";

export default function ErrorsPage() {
  const [search] = useSearchState();
  const list = $api.useQuery("get", "/api/v2/importErrors", { params: { query: { limit: 100 } } });
  const total = list.data?.total_entries;
  useReload("dags", ["/api/v2/importErrors"]);
  return (
    <>
      <PageHeader
        title="Errors"
        heading={total ? `${count(total)} ${total === 1 ? "file does" : "files do"} not load` : "Errors"}
        facts="DAGs of a file that does not load keep their last good version, and their runs continue."
      />
      <PageBody className="border-t border-line">
        <Loads query={list}>
          {({ import_errors: errors }) =>
            errors.length === 0 ? (
              <Empty title="Every file loads" command="tradewind dags errors">
                A DAG file with an error appears here within two seconds after it is saved, with the line that
                is wrong, and goes when the error is fixed.
              </Empty>
            ) : (
              <ul className="flex flex-col gap-4 p-4">
                {errors.map((each) => (
                  <li
                    key={each.import_error_id}
                    id={`error-${each.import_error_id}`}
                    className={cx(
                      "rounded-md border bg-surface",
                      String(search["error"]) === String(each.import_error_id)
                        ? "border-accent"
                        : "border-line",
                    )}
                  >
                    <header className="flex items-center gap-3 border-b border-line px-3 py-1.5">
                      <h2 className="min-w-0 truncate font-mono">{each.filename}</h2>
                      <span className="ml-auto text-sm whitespace-nowrap text-muted">
                        <Ago at={each.timestamp} />
                      </span>
                      <CopyButton label="Copy the error" text={each.stack_trace} />
                    </header>
                    <CodeFrame text={each.stack_trace} />
                  </li>
                ))}
              </ul>
            )
          }
        </Loads>
      </PageBody>
    </>
  );
}
