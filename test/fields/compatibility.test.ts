/** The rows of docs/compatibility.md about fields are made of the marks in the decoders. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { knownAnnotations, knownLabels, type MetadataKey } from '../../src/model/kinds/metadata-keys.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { Subject } from './effects.ts';
import { fieldsWithin, type SchemaField } from './schema-fields.ts';
import { subjects } from './subjects.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(packageRoot(), 'docs/compatibility.md');
const begin = '<!-- fields: begin -->\n';
const end = '<!-- fields: end -->\n';

const introduction = `| kind or field | | |
|---|---|---|
`;

/** Two groups have a kind of one name. */
const writtenNames: Readonly<Record<string, string>> = { KubernetesGateway: 'Gateway (Gateway API)' };

function rowsOf({ name: known, decoder }: Subject): string {
  const name = writtenNames[known] ?? known;
  const fields = fieldsWithin(decoder);
  const outer = fields.filter(({ path }) => !path.includes('.') && !isWithoutEffect(path, fields));
  const marked = fields.flatMap((field) => rowOf(name, field) ?? []);
  const count = fields.filter(
    ({ isLeaf, effect }) => isLeaf && (effect === undefined || effect.type.startsWith('some')),
  );
  const used = count.length === 0 ? 'no field is used' : `${count.length} fields are used`;
  return [
    `| **${name}**: ${outer.map(({ path }) => code(path)).join(', ') || 'none'} | ${count.length === 0 ? 'no' : 'done'} | ${used} |`,
    ...marked,
  ].join('\n');
}

/** Annotations or labels with the same meaning have one row. */
function rowsOfMetadata(what: string, keys: Readonly<Record<string, MetadataKey>>): readonly string[] {
  const groups = Map.groupBy(Object.entries(keys), ([, { readOn = [], reason, ofAnotherProgram }]) =>
    ofAnotherProgram
      ? 'no | belongs to another program: no warning'
      : readOn.length > 0
        ? `done | of ${readOn.map((kind) => writtenNames[kind] ?? kind).join(', ')}; on another kind a warning`
        : `no | a warning: ${reason}`,
  );
  return [...groups].map(
    ([about, entries]) => `| ${what} ${entries.map(([key]) => code(key)).join(', ')} | ${about} |`,
  );
}

function isWithoutEffect(path: string, fields: readonly SchemaField[]): boolean {
  return fields.some((field) => field.path === path && field.effect?.type === 'none');
}

function rowOf(kind: string, { path, effect }: SchemaField): string | undefined {
  if (effect === undefined) return undefined;
  const about = {
    none: ['no', 'a warning'],
    'some values': ['other', 'a warning for some values'],
    'some objects': ['other', 'a warning beside some values of other fields'],
    refused: ['no', 'refused'],
  } as const;
  const [status, what] = about[effect.type];
  return `| ${kind} ${code(path)} | ${status} | ${what}: ${effect.reason.replaceAll('|', '\\|')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}

it('docs/compatibility.md has the rows of fields as the decoders mark them', () => {
  const text = readFileSync(file, 'utf8');
  const [before, rest] = text.split(begin);
  const [, after] = rest?.split(end) ?? [];
  expect(after, `${file} has the markers ${begin} and ${end}`).toBeDefined();
  const rows = [
    ...subjects.map(rowsOf),
    ...rowsOfMetadata('annotations', knownAnnotations),
    ...rowsOfMetadata('labels', knownLabels),
  ];
  const current = `${before}${begin}${introduction}${rows.join('\n')}\n${end}${after}`;
  if (update) writeFileSync(file, current);
  expect(readFileSync(file, 'utf8') === current, `${file}: run with UPDATE_TABLES=1`).toBe(true);
});
