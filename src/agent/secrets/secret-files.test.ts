import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { readPair } from './secret-files.ts';

const authority = createAuthority();
const { certificate, privateKey } = authority.issue(['web.test']);

test('rejects an incomplete chain', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'secret-files-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const files = { certificate: join(directory, 'chain.pem'), key: join(directory, 'key.pem') };
  writeFileSync(files.certificate, `${certificate}${authority.certificate.slice(0, 200)}`);
  writeFileSync(files.key, privateKey);
  await expect(readPair(files)).rejects.toThrow(
    expect.objectContaining({ code: 'PEM_INVALID', fields: { path: files.certificate } }),
  );
});

test("accepts a file with key and certificate, and removes the key from the chain, which Envoy's config dump exposes", async () => {
  const directory = mkdtempSync(join(tmpdir(), 'secret-files-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'all.pem');
  writeFileSync(file, `a note\n${privateKey}${certificate}${authority.certificate}`);
  const pair = await readPair({ certificate: file, key: file });
  expect(pair.chain).toBe(`${certificate}${authority.certificate}`);
  expect(privateKeyPem(pair.key).toString()).toBe(privateKey);
});
