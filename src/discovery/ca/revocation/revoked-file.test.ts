import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type LoggedEvent, recordingLog } from '../../../../test/harness/recording-log.ts';
import { type Logger, silentLogger } from '../../../runtime/output/log.ts';
import { RevokedFile, serialText } from './revoked-file.ts';

let directory: string;
let warnings: LoggedEvent[];
let log: Logger;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'revoked-'));
  ({ log, lines: warnings } = recordingLog());
});
afterEach(() => rmSync(directory, { recursive: true }));

const file = (): string => join(directory, 'revoked');
const openFile = (): RevokedFile => new RevokedFile(file(), log);

it('a revoked-credentials file applies from its creation until its removal', () => {
  const revokedFile = openFile();
  expect([revokedFile.isTokenRevoked('a'), revokedFile.isCertificateRevoked('0A1B')]).toEqual([false, false]);
  writeFileSync(file(), '# stolen laptop\n\ntoken a\n  certificate 0a:1b   # cart\r\n');
  expect([revokedFile.isTokenRevoked('a'), revokedFile.isCertificateRevoked('A1B')]).toEqual([true, true]);
  expect([revokedFile.isTokenRevoked('A1B'), revokedFile.isCertificateRevoked('a')]).toEqual([false, false]);
  writeFileSync(file(), 'token b\n');
  expect([revokedFile.isTokenRevoked('a'), revokedFile.isTokenRevoked('b')]).toEqual([false, true]);
  rmSync(file());
  expect(revokedFile.isTokenRevoked('b')).toBe(false);
  expect(warnings).toEqual([]);
});

it.each<[string, () => void]>([
  ['an invalid line', () => writeFileSync(file(), 'tokn a\n')],
  ['an invalid serial number', () => writeFileSync(file(), 'certificate xyz\n')],
  [
    'a directory',
    () => {
      rmSync(file());
      mkdirSync(file());
    },
  ],
])('a revoked-credentials file keeps its earlier revocations if it is changed to %s', (_, spoil) => {
  const revokedFile = openFile();
  writeFileSync(file(), 'token a\ncertificate 1\n');
  expect(revokedFile.isTokenRevoked('a')).toBe(true);
  spoil();
  expect([revokedFile.isTokenRevoked('a'), revokedFile.isCertificateRevoked('1')]).toEqual([true, true]);
  expect(warnings).toHaveLength(1);
});

it('a revoked-credentials file is read again if it becomes readable, and reported once while unreadable', () => {
  const revokedFile = openFile();
  const sparePath = `${file()}-`;
  writeFileSync(sparePath, 'token a\n');
  // Reading a directory as a file fails even for root.
  mkdirSync(file());
  for (let i = 0; i < 3; i++) expect(revokedFile.isTokenRevoked('a')).toBe(false);
  expect(warnings).toMatchObject([{ event: 'revocations.unreadable', file: file() }]);
  rmSync(file(), { recursive: true });
  renameSync(sparePath, file());
  expect(revokedFile.isTokenRevoked('a')).toBe(true);
  chmodSync(file(), 0o600);
  expect([revokedFile.isTokenRevoked('a'), warnings.length]).toEqual([true, 1]);
});

it('a revoked-credentials file revokes nothing if its directory does not exist', () => {
  expect(new RevokedFile('', silentLogger).isTokenRevoked('')).toBe(false);
});

it.each([
  ['00', '0'],
  ['0a:1B', 'A1B'],
  ['A1B', 'A1B'],
])('a revoked-credentials file accepts each notation of a serial number: %s', (text, normalized) => {
  expect(serialText(text)).toBe(normalized);
});
