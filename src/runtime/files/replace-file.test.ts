import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ReplaceOptions, replaceFile, replaceFileSync } from './replace-file.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'replace-file-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const ways: readonly [string, (file: string, text: string, options?: ReplaceOptions) => Promise<void>][] = [
  ['replaceFile', replaceFile],
  ['replaceFileSync', async (file, text, options) => replaceFileSync(file, text, options)],
];

describe.each(ways)('%s', (_, replace) => {
  test.each<ReplaceOptions>([{}, { draft: 'unique' }, { flush: 'content' }, { flush: 'content and name' }])(
    'replaces content and mode and leaves no temporary file with %o',
    async (options) => {
      const file = join(directory, 'state');
      writeFileSync(file, 'old', { mode: 0o644 });
      await replace(file, 'new', options);
      expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777, readdirSync(directory)]).toEqual([
        'new',
        0o600,
        ['state'],
      ]);
    },
  );

  test('keeps the old content and removes the temporary file if the file cannot be replaced', async () => {
    const file = join(directory, 'state');
    mkdirSync(join(file, 'not empty'), { recursive: true });
    for (const draft of ['new', 'unique'] as const) await expect(replace(file, 'new', { draft })).rejects.toThrow();
    expect([readdirSync(directory), readdirSync(file)]).toEqual([['state'], ['not empty']]);
  });

  test('does not write through a link at the path of the temporary file', async () => {
    const [file, other] = [join(directory, 'state'), join(directory, 'other')];
    writeFileSync(other, 'kept');
    symlinkSync(other, `${file}.new`);
    await replace(file, 'new');
    expect([readFileSync(file, 'utf8'), readFileSync(other, 'utf8')]).toEqual(['new', 'kept']);
  });

  test('replaces the temporary file of an interrupted attempt', async () => {
    const file = join(directory, 'state');
    writeFileSync(`${file}.new`, 'a much longer half of a file', { mode: 0o644 });
    await replace(file, 'new', { mode: 0o640 });
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['new', 0o640]);
  });
});

test('replaceFileSync writes pieces in order', () => {
  const file = join(directory, 'state');
  replaceFileSync(
    file,
    (function* () {
      yield 'one ';
      yield 'two';
    })(),
  );
  expect(readFileSync(file, 'utf8')).toBe('one two');
});
