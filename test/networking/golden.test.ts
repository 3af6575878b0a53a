import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { caseDirectory, caseNames, goldenText, readCase } from './case.ts';

const update = process.env.UPDATE_GOLDEN === '1';

describe('generated resources of golden cases', () => {
  it.each(caseNames())('equal the reviewed output of %s', (name) => {
    const actual = goldenText(readCase(name));
    const file = join(caseDirectory, `${name}.out.json`);
    if (update) writeFileSync(file, actual);
    expect(existsSync(file), `${file} is missing: run with UPDATE_GOLDEN=1 and review it`).toBe(true);
    expect(actual).toBe(readFileSync(file, 'utf8'));
  });

  it('no golden output lacks its input', () => {
    const expected = new Set(caseNames().map((name) => `${name}.out.json`));
    const stale = readdirSync(caseDirectory).filter((file) => file.endsWith('.out.json') && !expected.has(file));
    if (update) for (const file of stale) rmSync(join(caseDirectory, file));
    expect(update ? [] : stale).toEqual([]);
  });
});
