/** The rows of docs/compatibility.md about fields are generated from the marks in the decoders. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { annotationKeys, labelKeys, type MetadataKey } from '../../src/model/kinds/metadata-keys.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { FieldSubject } from './effects.ts';
import { fieldsWithin, type SchemaField } from './schema-fields.ts';
import { subjects } from './subjects.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(packageRoot(), 'docs/compatibility.md');
const startMarker = '<!-- fields: begin -->\n';
const end = '<!-- fields: end -->\n';

const introduction = `| kind or field | status | remarks |
|---|---|---|
`;

/** A DestinationRule has the same policy for the host, its subsets, and the ports of both. */
const policyOfPart = /^(subsets\[\]\.)?trafficPolicy\.(portLevelSettings\[\]\.)?/;

/** Two API groups have a kind of this name. */
const writtenNames: Readonly<Record<string, string>> = { KubernetesGateway: 'Gateway (Gateway API)' };

function rowsOf({ name: subjectName, decoder }: FieldSubject): string {
  const name = writtenNames[subjectName] ?? subjectName;
  const fields = fieldsWithin(decoder);
  const outer = fields.filter(({ path }) => !path.includes('.') && !isWithoutEffect(path, fields));
  const markedRows = rowsOfMarked(name, fields);
  const count = fields.filter(
    ({ isLeaf, effect }) => isLeaf && (effect === undefined || effect.type.startsWith('some')),
  );
  const usageText =
    count.length === 0
      ? 'no field is used'
      : count.length === 1
        ? '1 field is used'
        : `${count.length} fields are used`;
  return [
    `| **${name}**: ${outer.map(({ path }) => code(path)).join(', ') || 'none'} | ${count.length === 0 ? 'no' : 'done'} | ${usageText} |`,
    ...markedRows,
  ].join('\n');
}

/** Annotations or labels with the same meaning share a row. */
function rowsOfMetadata(metadataKind: string, keys: Readonly<Record<string, MetadataKey>>): readonly string[] {
  const groups = Map.groupBy(Object.entries(keys), ([, { kindsThatReadIt = [], reason, belongsToOtherProgram }]) =>
    belongsToOtherProgram
      ? 'no | no warning: belongs to another program'
      : kindsThatReadIt.length > 0
        ? `done | on ${kindsThatReadIt.map((kind) => writtenNames[kind] ?? kind).join(', ')}; warning on other kinds`
        : `no | warning: ${reason}`,
  );
  return [...groups].map(
    ([description, entries]) => `| ${metadataKind} ${entries.map(([key]) => code(key)).join(', ')} | ${description} |`,
  );
}

function isWithoutEffect(path: string, fields: readonly SchemaField[]): boolean {
  return fields.some((field) => field.path === path && field.effect?.type === 'none');
}

/** Fields with the same remark share a row. */
function rowsOfMarked(kind: string, fields: readonly SchemaField[]): readonly string[] {
  const markedFields = fields.flatMap(({ path, effect }) =>
    effect === undefined ? [] : [{ path, remark: remarkOf(effect) }],
  );
  const groups = Map.groupBy(markedFields, ({ remark }) => remark);
  return [...groups].map(([remark, of]) => {
    const paths = new Set(of.map(({ path }) => path.replace(policyOfPart, 'trafficPolicy.')));
    return `| ${kind} ${[...paths].map(code).join(', ')} | ${remark} |`;
  });
}

function remarkOf({ type, reason }: NonNullable<SchemaField['effect']>): string {
  const descriptions = {
    none: 'no | warning',
    'some values': 'other | warning for some values',
    'some objects': 'other | warning with some values of other fields',
    refused: 'no | rejected',
  } as const;
  return `${descriptions[type]}: ${reason.replaceAll('|', '\\|')}`;
}

function code(text: string): string {
  return `\`${text}\``;
}

it('docs/compatibility.md has the field rows generated from the marks in the decoders', () => {
  const text = readFileSync(file, 'utf8');
  const [head, rest] = text.split(startMarker);
  const [, textAfter] = rest?.split(end) ?? [];
  expect(textAfter, `${file} has the markers ${startMarker} and ${end}`).toBeDefined();
  const rows = [
    ...subjects.map(rowsOf),
    ...rowsOfMetadata('annotations', annotationKeys),
    ...rowsOfMetadata('labels', labelKeys),
  ];
  const current = `${head}${startMarker}${introduction}${rows.join('\n')}\n${end}${textAfter}`;
  if (update) writeFileSync(file, current);
  expect(readFileSync(file, 'utf8') === current, `${file}: run with UPDATE_TABLES=1`).toBe(true);
});
