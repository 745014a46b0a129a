/** The REST API of this server: what can be called, with which parameters, and what it answers. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { send } from "../../actions/api-call.ts";
import { curlOf } from "../../actions/command-text.ts";
import { BASE } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { count } from "../../time/format.ts";
import { Copyable } from "../../ui/copy.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import {
  byTag,
  exampleOf,
  type OpenApi,
  type Operation,
  operationsOf,
  type Schemas,
  typeText,
} from "./open-api.ts";

const DOCUMENT = "/openapi.json";

export default function ReferencePage() {
  const [search, setSearch] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const query = useQuery({
    queryKey: ["get", DOCUMENT],
    queryFn: ({ signal }) => send<OpenApi>({ method: "GET", path: DOCUMENT }, signal),
    // It belongs to the version of the server.
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <>
      <PageHeader
        title="API reference"
        facts={
          <span>
            Programs send a token: <code>Authorization: Bearer …</code>. The same as a document:{" "}
            <a href={`${BASE.replace(/\/$/, "")}${DOCUMENT}`} className="link underline">
              openapi.json
            </a>
          </span>
        }
        actions={
          <SearchBox
            label="Filter by path, method or text"
            value={q}
            onChange={useCallback((text) => setSearch({ q: text }), [setSearch])}
            className="w-64"
          />
        }
      />
      <Loads query={query}>{(document) => <Reference document={document} q={q} />}</Loads>
    </>
  );
}

function Reference({ document, q }: { readonly document: OpenApi; readonly q: string }) {
  const [search, setSearch] = useSearchState();
  const open = textOf(search, "call");
  const operations = useMemo(() => operationsOf(document), [document]);
  const tags = useMemo(() => byTag(operations, q), [operations, q]);
  const shown = operations.find(({ id }) => id === open);
  return (
    <PageBody
      className="border-t border-line"
      pane={
        shown && (
          <OperationPane
            key={shown.id}
            operation={shown}
            schemas={document.components?.schemas ?? {}}
            onClose={() => setSearch({ call: undefined })}
          />
        )
      }
    >
      {tags.length === 0 && <Empty title="No call of the API matches" />}
      {tags.map(([tag, own]) => (
        <section key={tag} className="px-4 pt-4 last:pb-6">
          <h2 className="flex items-baseline gap-2 pb-1">
            {tag} <span className="text-sm font-normal text-muted">{count(own.length)}</span>
          </h2>
          <p className="pb-1 text-muted">{document.tags?.find(({ name }) => name === tag)?.description}</p>
          <ul>
            {own.map((operation) => (
              <li key={operation.id} className="border-t border-line">
                <button
                  type="button"
                  aria-expanded={operation.id === open}
                  onClick={() => setSearch({ call: operation.id })}
                  className={`flex min-h-7 w-full items-baseline gap-3 py-1 text-left font-mono hover:bg-hover ${operation.id === open ? "bg-accent-soft" : ""}`}
                >
                  <span className="w-14 shrink-0 text-muted">{operation.method}</span>
                  <span className="min-w-0 break-all">{operation.path}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </PageBody>
  );
}

function OperationPane({
  operation,
  schemas,
  onClose,
}: {
  readonly operation: Operation;
  readonly schemas: Schemas;
  readonly onClose: () => void;
}) {
  const { answers, body, description, method, parameters, path } = operation;
  return (
    <Pane title={`${method} ${path}`} onClose={onClose}>
      <div className="flex flex-col gap-4 p-4">
        <p className="font-mono break-all">
          <span className="text-muted">{method}</span> {path}
        </p>
        {description !== undefined && <p>{description}</p>}
        <section className="flex flex-col gap-1.5">
          <h3>As curl</h3>
          <Copyable
            text={curlOf(exampleOf(operation, schemas), `${location.origin}${BASE.replace(/\/$/, "")}`)}
          />
        </section>
        {parameters.length > 0 && (
          <section className="flex flex-col gap-1.5">
            <h3>Parameters</h3>
            <ul className="flex flex-col gap-1.5">
              {parameters.map((parameter) => (
                <li key={`${parameter.in} ${parameter.name}`}>
                  <code className="font-medium">{parameter.name}</code>{" "}
                  <span className="text-muted">
                    {parameter.in}
                    {parameter.required === true && ", required"}
                  </span>
                  <div className="font-mono break-words text-muted">
                    {typeText(parameter.schema, schemas)}
                  </div>
                  {parameter.description !== undefined && <div>{parameter.description}</div>}
                </li>
              ))}
            </ul>
          </section>
        )}
        {body !== undefined && <Type title="Body" text={typeText(body, schemas)} />}
        {answers.map(({ schema, status }) => (
          <Type
            key={status}
            title={`Answer ${status}`}
            text={schema === undefined ? "no JSON" : typeText(schema, schemas)}
          />
        ))}
      </div>
    </Pane>
  );
}

function Type({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <section className="flex flex-col gap-1.5">
      <h3>{title}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <pre tabIndex={0} className="max-h-96 overflow-auto rounded-md border border-line bg-raised p-2">
        {text}
      </pre>
    </section>
  );
}
