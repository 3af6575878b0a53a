import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { lstatSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createActor } from 'xstate';
import { identityName, rootsName } from '../../../machines/agent/secrets/held-secrets.ts';
import { eventuallyHolds } from '../../../test/harness/eventually.ts';
import { privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { writeOutput } from './output-files.ts';
import { SecretVault } from './secret-vault.ts';

test.each<[string, (file: string) => void]>([
  ['a named pipe without a writer', (file) => void execFileSync('mkfifo', [file])],
  [
    'a sparse file larger than memory',
    (file) => {
      writeFileSync(file, '');
      truncateSync(file, 2 ** 40);
    },
  ],
  ['a missing file', () => {}],
])('replaces any file at the path of a key, such as %s', async (_, createFile) => {
  const directory = mkdtempSync(join(tmpdir(), 'output-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  createFile(join(directory, 'key.pem'));
  const vault = new SecretVault();
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = vault.keepCertificate(identityName, { chain: 'chain', key });
  const roots = vault.keepRoots(rootsName, 'roots');
  const actor = createActor(writeOutput({ vault, directory, env: {} })).start();
  onTestFinished(() => void actor.stop());
  actor.send({ type: 'output.write', certificate, roots });
  await eventuallyHolds(() => expect(readFileSync(join(directory, 'root-cert.pem'), 'utf8')).toBe('roots'));
  const names = ['key.pem', 'cert-chain.pem'].map((name) => join(directory, name));
  expect(names.map((name) => lstatSync(name).isFile() && lstatSync(name).mode & 0o777)).toEqual([0o600, 0o600]);
  expect(names.map((name) => readFileSync(name, 'utf8'))).toEqual([privateKeyPem(key).toString(), 'chain']);
});
