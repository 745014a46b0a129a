/** A form for a JSON Schema. Its value is JSON; undefined stands for fields that are not set. */
import { Plus, X } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { Field, Input, Select, TextArea } from "../ui/field.tsx";
import type { FormField, NamedField, TextFormat } from "./fields.ts";
import { type FormErrors, initialValue, pointerOf, Unparsed } from "./values.ts";

interface FieldProps<Kind extends FormField["kind"] = FormField["kind"]> {
  readonly field: Extract<FormField, { kind: Kind }>;
  readonly value: unknown;
  readonly pointer: string;
  readonly errors: FormErrors;
  readonly onChange: (value: unknown) => void;
}

/** The properties of an object one below the other; any other schema is one field. */
export function SchemaForm({
  field,
  value,
  errors,
  onChange,
}: {
  readonly field: FormField;
  readonly value: unknown;
  readonly errors: FormErrors;
  readonly onChange: (value: unknown) => void;
}) {
  if (field.kind !== "object")
    return <AnyField field={field} value={value} pointer="" errors={errors} onChange={onChange} />;
  return (
    <div className="flex flex-col gap-3">
      <Properties fields={field.fields} value={value} pointer="" errors={errors} onChange={onChange} />
      <Unplaced errors={errors} field={field} />
    </div>
  );
}

/** Messages about properties that have no field. */
function Unplaced({ errors, field }: { readonly errors: FormErrors; readonly field: FormField }) {
  const known = field.kind === "object" ? field.fields.map(({ name }) => pointerOf("", name)) : [];
  const others = [...errors].filter(
    ([pointer]) => !known.some((each) => pointer === each || pointer.startsWith(`${each}/`)),
  );
  return others.map(([pointer, message]) => (
    <p key={pointer} role="alert" className="text-danger">
      {pointer.slice(1)} {message}
    </p>
  ));
}

function Properties({
  fields,
  value,
  pointer,
  errors,
  onChange,
}: Omit<FieldProps, "field"> & { readonly fields: readonly NamedField[] }) {
  const values = (value ?? {}) as Readonly<Record<string, unknown>>;
  return fields.map(({ field, name }) => (
    <AnyField
      key={name}
      field={field}
      value={values[name]}
      pointer={pointerOf(pointer, name)}
      errors={errors}
      onChange={(next) => onChange({ ...values, [name]: next })}
    />
  ));
}

function AnyField(props: FieldProps) {
  const { field } = props;
  switch (field.kind) {
    case "text":
      return <TextField {...props} field={field} />;
    case "number":
      return <NumberField {...props} field={field} />;
    case "boolean":
      return <BooleanField {...props} field={field} />;
    case "choice":
      return <ChoiceField {...props} field={field} />;
    case "object":
      return <ObjectField {...props} field={field} />;
    case "array":
      return <ArrayField {...props} field={field} />;
    case "json":
      return <JsonField {...props} field={field} />;
  }
}

/** Label, description and message. The name of the property is shown as it is written in code. */
function labelled({ errors, field, pointer }: FieldProps) {
  return {
    label: field.label,
    hint: field.description,
    error: errors.get(pointer),
    required: field.isRequired,
  };
}

/** A placeholder that says what an empty field stands for. */
function unset(field: FormField): string {
  return field.isRequired ? "" : field.isNullable ? "null" : "not set";
}

/** The value of an empty field. */
function empty(field: FormField): null | undefined {
  return field.isNullable ? null : undefined;
}

const INPUTS: Readonly<Record<Exclude<TextFormat, "lines">, string>> = {
  ...{ line: "text", date: "date", time: "time", email: "email", uri: "url" },
  // A date with an offset: no input of browsers has one.
  "date-time": "text",
};

function TextField({ field, onChange, value, ...rest }: FieldProps<"text">) {
  const text = typeof value === "string" ? value : "";
  const change = (next: string) => onChange(next === "" ? empty(field) : next);
  return (
    <Field {...labelled({ field, onChange, value, ...rest })}>
      {(ids) =>
        field.format === "lines" ? (
          <TextArea {...ids} rows={4} value={text} onChange={(event) => change(event.target.value)} />
        ) : (
          <Input
            {...ids}
            type={INPUTS[field.format]}
            step={field.format === "time" ? 1 : undefined}
            value={text}
            placeholder={field.format === "date-time" ? "2026-11-16T02:00:00Z" : unset(field)}
            onChange={(event) => change(event.target.value)}
          />
        )
      }
    </Field>
  );
}

function NumberField({ field, onChange, value, ...rest }: FieldProps<"number">) {
  const shown = value instanceof Unparsed ? value.text : typeof value === "number" ? String(value) : "";
  const [typed, setTyped] = useState(shown);
  // What is typed may be written in another way than the number: "1.0", "1e3".
  const isCurrent =
    value instanceof Unparsed ? value.text === typed : typed !== "" && Number(typed) === value;
  return (
    <Field {...labelled({ field, onChange, value, ...rest })}>
      {(ids) => (
        <Input
          {...ids}
          inputMode={field.isInteger ? "numeric" : "decimal"}
          value={isCurrent ? typed : shown}
          placeholder={unset(field)}
          className="max-w-48"
          onChange={(event) => {
            const text = event.target.value.trim();
            setTyped(text);
            const number = Number(text);
            onChange(text === "" ? empty(field) : Number.isFinite(number) ? number : new Unparsed(text));
          }}
        />
      )}
    </Field>
  );
}

function BooleanField({ field, onChange, value, ...rest }: FieldProps<"boolean">) {
  if (!field.isRequired || field.isNullable)
    return <OptionSelect {...rest} field={field} value={value} onChange={onChange} options={[true, false]} />;
  return (
    <Field {...labelled({ field, onChange, value, ...rest })} required={false}>
      {(ids) => (
        <input
          {...ids}
          type="checkbox"
          className="size-4 self-start"
          checked={value === true}
          onChange={(event) => onChange(event.target.checked)}
        />
      )}
    </Field>
  );
}

function ChoiceField(props: FieldProps<"choice">) {
  return <OptionSelect {...props} options={props.field.options} />;
}

function OptionSelect({
  options,
  field,
  value,
  onChange,
  ...rest
}: FieldProps & { readonly options: readonly unknown[] }) {
  const text = (option: unknown) => (typeof option === "string" ? option : JSON.stringify(option));
  const index = options.findIndex((option) => text(option) === text(value));
  return (
    <Field {...labelled({ field, value, onChange, ...rest })}>
      {(ids) => (
        <Select
          {...ids}
          className="self-start"
          value={index}
          onChange={(event) => {
            const chosen = Number(event.target.value);
            onChange(chosen < 0 ? empty(field) : options[chosen]);
          }}
        >
          {(index < 0 || !field.isRequired) && <option value={-1}>{unset(field) || "Choose…"}</option>}
          {options.map((option, at) => (
            <option key={text(option)} value={at}>
              {text(option)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

function ObjectField({ field, onChange, value, pointer, errors }: FieldProps<"object">) {
  const isSet = typeof value === "object" && value !== null;
  return (
    <fieldset className="flex flex-col gap-3 border-l-2 border-line pl-3">
      <legend className="mb-1 flex items-center gap-2 font-medium">
        {field.label}
        {!field.isRequired && (
          <Button
            kind="quiet"
            onClick={() =>
              onChange(isSet ? empty(field) : (initialValue({ ...field, isRequired: true }) ?? {}))
            }
          >
            {isSet ? "Remove" : "Set"}
          </Button>
        )}
      </legend>
      {field.description !== undefined && <p className="text-sm text-muted">{field.description}</p>}
      {errors.has(pointer) && <p className="text-sm text-danger">{errors.get(pointer)}</p>}
      {isSet && <Properties fields={field.fields} {...{ value, pointer, errors, onChange }} />}
    </fieldset>
  );
}

function ArrayField({ field, onChange, value, pointer, errors }: FieldProps<"array">) {
  const items = Array.isArray(value) ? (value as readonly unknown[]) : [];
  const change = (next: readonly unknown[]) =>
    onChange(next.length === 0 && !field.isRequired ? empty(field) : next);
  return (
    <fieldset className="flex flex-col gap-1.5 border-l-2 border-line pl-3">
      <legend className="mb-1 font-medium">
        {field.label}
        {field.isRequired && <span className="text-danger"> *</span>}
      </legend>
      {field.description !== undefined && <p className="text-sm text-muted">{field.description}</p>}
      {errors.has(pointer) && <p className="text-sm text-danger">{errors.get(pointer)}</p>}
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an item is its place
        <div key={index} className="flex items-end gap-1">
          <div className="min-w-0 flex-1">
            <AnyField
              field={{ ...field.item, label: `${field.item.label} ${index + 1}` }}
              value={item}
              pointer={pointerOf(pointer, index)}
              errors={errors}
              onChange={(next) => change(items.with(index, next))}
            />
          </div>
          <IconButton label={`Remove item ${index + 1}`} onClick={() => change(items.toSpliced(index, 1))}>
            <X />
          </IconButton>
        </div>
      ))}
      <Button className="self-start" onClick={() => change([...items, initialValue(field.item)])}>
        <Plus aria-hidden />
        Add an item
      </Button>
    </fieldset>
  );
}

function JsonField({ field, onChange, value, ...rest }: FieldProps<"json">) {
  const [text, setText] = useState(() => textOf(value));
  return (
    <Field {...labelled({ field, onChange, value, ...rest })} hint={field.description ?? "JSON"}>
      {(ids) => (
        <TextArea
          {...ids}
          rows={3}
          value={text}
          placeholder={unset(field)}
          onChange={(event) => {
            setText(event.target.value);
            onChange(parsed(event.target.value));
          }}
        />
      )}
    </Field>
  );
}

function textOf(value: unknown): string {
  if (value instanceof Unparsed) return value.text;
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

/** Undefined for an empty text. */
export function parsed(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return new Unparsed(text);
  }
}
