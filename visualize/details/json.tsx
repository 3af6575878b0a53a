import type { JSX } from 'preact';
import { shortPair } from '../model/context-change.ts';

/** Longer lists and objects begin closed. */
const openUpTo = 12;
/** Texts are cut here; copying gives all of them. */
const shownChars = 600;

/** Plain data as a tree that opens and closes. `marked`: JSON Pointers of what is new. */
export function Json({ value, path = '', marked }: JsonProps): JSX.Element {
  if (typeof value === 'object' && value !== null) return <Fields value={value} path={path} marked={marked} />;
  return <Leaf value={value} />;
}

interface JsonProps {
  readonly value: unknown;
  readonly path?: string;
  readonly marked?: ReadonlyMap<string, unknown> | undefined;
}

function Fields({
  value,
  path,
  marked,
}: {
  readonly value: object;
  readonly path: string;
  readonly marked: JsonProps['marked'];
}): JSX.Element {
  const entries = Object.entries(value);
  if (entries.length === 0) return <span class="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>;
  return (
    <ul class="json">
      {entries.map(([key, field]) => (
        <Field
          key={key}
          name={key}
          value={field}
          path={`${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`}
          marked={marked}
        />
      ))}
    </ul>
  );
}

function Field({
  name,
  value,
  path,
  marked,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly path: string;
  readonly marked: JsonProps['marked'];
}): JSX.Element {
  const isNew = marked?.has(path) ?? false;
  const before = marked?.get(path);
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    return (
      <li data-changed={isNew || undefined}>
        <span class="key">{name}</span>
        {isNew && before !== undefined && <del>{shortPair(before, value)[0]}</del>}
        <Json value={value} path={path} />
      </li>
    );
  }
  const hasNew = marked !== undefined && [...marked.keys()].some((pointer) => pointer.startsWith(`${path}/`));
  const entries = Object.keys(value).length;
  return (
    <li data-changed={isNew || undefined}>
      <details open={isNew || hasNew || entries <= openUpTo}>
        <summary>
          <span class="key">{name}</span>
          <span class="muted">{Array.isArray(value) ? `[${entries}]` : `{${entries}}`}</span>
        </summary>
        <Fields value={value} path={path} marked={marked} />
      </details>
    </li>
  );
}

function Leaf({ value }: { readonly value: unknown }): JSX.Element {
  if (typeof value === 'string') {
    const cut = value.length > shownChars;
    return (
      <span class="string" title={cut ? `${value.length} characters` : undefined}>
        {cut ? `${value.slice(0, shownChars)}…` : value === '' ? '""' : value}
      </span>
    );
  }
  return <span class={value === null || value === undefined ? 'null' : typeof value}>{String(value)}</span>;
}
