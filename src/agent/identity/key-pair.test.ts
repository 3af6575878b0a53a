/** Issue 33, item 2: private keys in heap snapshots of an agent. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';

/** Runs a process that serves a secret and takes a heap snapshot of itself. Searches for the bytes of the key, so that the search adds no string. */
async function holdsKey(keepMode: string): Promise<boolean> {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const files = { certificate: join(folder.path, 'chain.pem'), key: join(folder.path, 'key.pem') };
  const { certificate, privateKey } = createAuthority().issue(['web']);
  writeFileSync(files.certificate, certificate);
  writeFileSync(files.key, privateKey);
  const source = (path: string): string => JSON.stringify(join(import.meta.dirname, '..', path));
  const script = `
    import { readFileSync } from 'node:fs';
    import { getHeapSnapshot } from 'node:v8';
    import { buffer } from 'node:stream/consumers';
    const { readPair } = await import(${source('secrets/secret-files.ts')});
    const { SecretVault } = await import(${source('secrets/secret-vault.ts')});
    const { privateKeyPem } = await import(${source('../runtime/grpc/key-pair.ts')});
    const files = ${JSON.stringify(files)};
    globalThis.vault = new SecretVault();
    globalThis.pair = await readPair(files);
    globalThis.version = vault.keepCertificate('default', pair);
    globalThis.pem = privateKeyPem(pair.key);
    globalThis.kept = ${keepMode};
    const line = readFileSync(files.key).subarray(40, 80);
    console.log((await buffer(getHeapSnapshot())).includes(line));`;
  const { stdout } = await execa(process.execPath, ['--input-type=module', '-e', script]);
  return stdout === 'true';
}

test('keeps the private key of a served secret out of heap snapshots', async () => {
  expect(await holdsKey('undefined')).toBe(false);
});

test('finds a key in a heap snapshot if the key is a string', async () => {
  expect(await holdsKey("readFileSync(files.key, 'utf8')")).toBe(true);
});
