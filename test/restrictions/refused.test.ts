/**
 * Each invalid or unusual form of a restriction is rejected, or accepted with the effect in the table. For the real
 * Envoy see test/e2e/features/restrictions.test.ts.
 */
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { codedField } from '../fixtures/coded-error.ts';
import { nulls, type RestrictionRow, table } from './table.ts';

function problemsOf(
  { kind, spec }: Pick<RestrictionRow, 'spec'> & { kind: string },
  apiVersion = 'security.istio.io/v1',
): { valid: boolean; errors: string[]; warnings: string[] } {
  const keys = '{"keys":[{"kty":"EC"}]}';
  const text = stringify({
    apiVersion,
    kind,
    metadata: { name: 'a', namespace: 'shop' },
    spec,
  });
  const { configs, problems } = readConfigFile('a.yaml', text.replaceAll('KEYS', `'${keys}'`), {
    creationTimestamp: 0,
  });
  const texts = (severity: string): string[] =>
    problems.filter((problem) => problem.severity === severity).map(codedField);
  return { valid: configs.length > 0, errors: texts('error'), warnings: texts('warning') };
}

it.each(table)('the field $field of $kind in the form "$written" has the effect listed in the table', (row) => {
  const { valid, errors, warnings } = problemsOf(row);
  if ('refused' in row.outcome) {
    expect(errors.join('\n')).toContain(row.outcome.refused);
    expect(valid).toBe(false);
    return;
  }
  expect(errors).toEqual([]);
  expect(valid).toBe(true);
  if (row.outcome.warned !== undefined) expect(warnings.join('\n')).toContain(row.outcome.warned);
  else expect(warnings).toEqual([]);
});

it.each(nulls)('the field $field of $kind is rejected if it is null', (row) => {
  const { valid, errors } = problemsOf(row, row.apiVersion);
  expect(errors).toContain(`${row.field}: FIELD_EMPTY`);
  expect(valid).toBe(false);
});
