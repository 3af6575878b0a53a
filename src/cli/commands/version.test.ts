import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildInfo, formatBuildInfo } from './version.ts';

const info = { version: '1.2.3', revision: 'abc', runtime: 'node v24' };

test('the version command prints the same data in each format', async () => {
  expect(await formatBuildInfo(info, false)).toBe('version   1.2.3\nrevision  abc\nruntime   node v24');
  expect(await formatBuildInfo(info, true)).toBe('1.2.3-abc');
  expect(JSON.parse(await formatBuildInfo(info, false, 'json'))).toEqual({ clientVersion: info });
  expect(parse(await formatBuildInfo(info, false, 'yaml'))).toEqual({ clientVersion: info });
});

test('the version command prints the package version and the runtime', () => {
  expect(buildInfo()).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    runtime: `node ${process.version}`,
  });
});
