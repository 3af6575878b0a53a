/** Configuration files: valid ones with odd parts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import type { Draw } from '../../random-config/draw.ts';
import { mutatedValue, oddValue } from './breaking-words.ts';
import { mutatedBytes, randomBytes } from './bytes.ts';

/** One YAML document of each file below these folders. */
export function yamlValues(folders: readonly string[], isIncluded: (name: string) => boolean): unknown[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(isIncluded)
      .sort()
      .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')))
      .map((document) => (document as { toJS(): unknown }).toJS())
      .filter((value) => value !== null && value !== undefined),
  );
}

/** Documents whose parsing costs more than their size suggests. */
const traps = [
  `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `${'bcdefghij'[i]}: &${'bcdefghij'[i]} [${Array(9).fill(`*${'abcdefghij'[i]}`)}]`).join('\n')}\n`,
  `${'['.repeat(5_000)}`,
  `${'{a: '.repeat(3_000)}`,
  `a: &x {b: *x}\n`,
  '- '.repeat(20_000),
  '!!js/function "x"',
  '%YAML 9.9\n---\na',
  '\ufeffkind: X',
  `${'---\n'.repeat(10_000)}`,
  '? [a, b]\n: c\n? {d: e}\n: f\n',
  'a: |\n\tb\n',
  '<<: {a: 1}\n<<: [1, 2]\n',
  `x: ${'1'.repeat(100_000)}`,
  `"${'\\x00'.repeat(5_000)}"`,
];

export function randomYaml(draw: Draw, values: readonly unknown[]): Buffer {
  if (draw.chance(0.05)) return Buffer.from(draw.pick(traps));
  if (draw.chance(0.03)) return randomBytes(draw, draw.int(0, 500));
  const documents = draw.list(1, 3, () => document(draw, values));
  const bytes = Buffer.from(documents.join('---\n'));
  return draw.chance(0.15) ? mutatedBytes(draw, bytes) : bytes;
}

function document(draw: Draw, values: readonly unknown[]): string {
  const value = draw.chance(0.97) ? mutatedValue(draw, draw.pick(values)) : oddValue(draw);
  try {
    return draw.chance(0.2)
      ? `${JSON.stringify(value)}\n`
      : stringify(value, { aliasDuplicateObjects: draw.chance(0.5) });
  } catch {
    // Too deep for the YAML writer, so the reader is not tested with it.
    return '[]\n';
  }
}
