import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { shortenPair } from '../model/context-change.ts';
import {
  entryCount,
  initiallyOpenedPaths,
  type MarkedPaths,
  maxJsonEntries,
  pointerTo,
  shownEntries,
} from '../model/recording/opened-json.ts';
import { moreText } from '../parts/more.ts';

/** Copying returns the complete text. */
const shownChars = 600;

/** `markedPaths` has the JSON Pointers of new values. */
export function Json({ value, path = '', markedPaths: marked }: JsonProps): JSX.Element {
  if (typeof value !== 'object' || value === null) return <Leaf value={value} />;
  return (
    <Fields value={value} path={path} markedPaths={marked} openedPaths={initiallyOpenedPaths(value, path, marked)} />
  );
}

interface JsonProps {
  readonly value: unknown;
  readonly path?: string;
  readonly markedPaths?: MarkedPaths | undefined;
}

interface NestedProps {
  readonly path: string;
  readonly markedPaths: MarkedPaths | undefined;
  readonly openedPaths: ReadonlySet<string>;
}

function Fields({
  value,
  path,
  markedPaths: marked,
  openedPaths: opened,
}: NestedProps & { readonly value: object }): JSX.Element {
  const entries = shownEntries(value);
  const count = entryCount(value);
  if (count === 0) return <span class="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>;
  return (
    <ul class="json">
      {entries.map(([key, field]) => (
        <Field
          key={key}
          name={key}
          value={field}
          path={pointerTo(path, key)}
          markedPaths={marked}
          openedPaths={opened}
        />
      ))}
      {count > maxJsonEntries && <li class="muted">{moreText(count - maxJsonEntries, 'copy to see all')}</li>}
    </ul>
  );
}

function Field({
  name,
  value,
  path,
  markedPaths: marked,
  openedPaths: opened,
}: NestedProps & { readonly name: string; readonly value: unknown }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const isMarked = marked?.has(path) ?? false;
  const previousValue = marked?.get(path);
  if (typeof value !== 'object' || value === null || entryCount(value) === 0) {
    return (
      <li data-changed={isMarked || undefined}>
        <span class="key">{name}</span>
        {isMarked && previousValue !== undefined && <del>{shortenPair(previousValue, value)[0]}</del>}
        <Json value={value} path={path} />
      </li>
    );
  }
  const opensAtFirst = opened.has(path);
  const entries = entryCount(value);
  return (
    <li data-changed={isMarked || undefined}>
      <details open={opensAtFirst} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="key">{name}</span>
          <span class="muted">{Array.isArray(value) ? `[${entries}]` : `{${entries}}`}</span>
        </summary>
        {opensAtFirst ? (
          <Fields value={value} path={path} markedPaths={marked} openedPaths={opened} />
        ) : (
          isOpen && <Json value={value} path={path} markedPaths={marked} />
        )}
      </details>
    </li>
  );
}

function Leaf({ value }: { readonly value: unknown }): JSX.Element {
  if (typeof value === 'string') {
    const isTruncated = value.length > shownChars;
    return (
      <span class="string" title={isTruncated ? `${value.length} characters` : undefined}>
        {isTruncated ? `${value.slice(0, shownChars)}…` : value === '' ? '""' : value}
      </span>
    );
  }
  return <span class={value === null || value === undefined ? 'null' : typeof value}>{String(value)}</span>;
}
