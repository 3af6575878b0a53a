import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { switchedMount } from '../../../../test/harness/switched-mount.ts';
import type { ServerCertificateFiles } from './secure-port.ts';
import { readServerCertificate } from './server-certificates.ts';

const authority = createAuthority();
const issuedCertificate = authority.issue(['istiod.istio-system.svc']);
const now = new Date();
let root: string;
let files: ServerCertificateFiles;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-certificate-'));
  files = { caFile: join(root, 'ca'), certificateFile: join(root, 'cert'), keyFile: join(root, 'key') };
  writeFileSync(files.caFile, authority.certificate);
  writeFileSync(files.certificateFile, issuedCertificate.certificate);
  writeFileSync(files.keyFile, issuedCertificate.privateKey);
});

afterEach(() => rmSync(root, { recursive: true }));

it('readServerCertificate reads three files', () => {
  expect(readServerCertificate(files, now).serialNumber).toBe(issuedCertificate.serialNumber);
});

it.each(['caFile', 'certificateFile', 'keyFile'] as const)(
  'readServerCertificate rejects a missing or invalid %s, and names the file',
  (file) => {
    writeFileSync(files[file], 'no certificate');
    expect(() => readServerCertificate(files, now)).toThrow(`${files[file]} is not valid PEM`);
    rmSync(files[file]);
    expect(() => readServerCertificate(files, now)).toThrow(`${files[file]}: ENOENT`);
  },
);

it.each(['caFile', 'certificateFile', 'keyFile'] as const)(
  'readServerCertificate rejects a named pipe as %s without waiting for a writer',
  (file) => {
    rmSync(files[file]);
    execFileSync('mkfifo', [files[file]]);
    expect(() => readServerCertificate(files, now)).toThrow(`${files[file]}: must be a regular file, is a named pipe`);
  },
);

it('readServerCertificate rejects a certificate that does not match its key', () => {
  writeFileSync(files.keyFile, authority.privateKey);
  expect(() => readServerCertificate(files, now)).toThrow(`does not match the certificate in`);
});

it('readServerCertificate reads consistent files while Kubernetes replaces the directory', async () => {
  const versions = Array.from({ length: 6 }, (_, number) => {
    const from = createAuthority(`authority ${number}`);
    const { certificate, privateKey } = from.issue(['istiod.istio-system.svc']);
    return { 'ca.crt': from.certificate, 'tls.crt': certificate, 'tls.key': privateKey };
  });
  const folder = join(root, 'mounted');
  mkdirSync(folder);
  const mount = await switchedMount(folder, versions, 2);
  try {
    const [caFile, certificateFile, keyFile] = ['ca.crt', 'tls.crt', 'tls.key'].map((name) => join(folder, name));
    const mounted = { caFile: caFile!, certificateFile: certificateFile!, keyFile: keyFile! };
    const seenSerials = new Set<string>();
    for (
      let i = 0;
      i < sized({ short: 250, full: 1_000 }) || (seenSerials.size < versions.length && i < 100_000);
      i++
    ) {
      seenSerials.add(readServerCertificate(mounted, now).serialNumber);
    }
    expect(seenSerials.size).toBe(versions.length);
  } finally {
    await mount.stop();
  }
});

it('readServerCertificate rejects a certificate that is expired or not yet valid', () => {
  expect(() => readServerCertificate(files, new Date('2999-01-01'))).toThrow('expired on');
  expect(() => readServerCertificate(files, new Date('1999-01-01'))).toThrow('is not valid before');
});
