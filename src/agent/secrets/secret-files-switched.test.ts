import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { type SwitchedMount, switchedMount } from '../../../test/harness/switched-mount.ts';
import { digestDirectories } from '../files/certificate-files.ts';
import { ControlPlaneCredentials } from '../identity/control-plane-credentials.ts';
import { readPair } from './secret-files.ts';

const authority = createAuthority();
const versions = Array.from({ length: 6 }, (_, number) => {
  const { certificate, privateKey } = authority.issue([`v${number}.test`]);
  const files = { 'tls.crt': certificate, 'tls.key': privateKey };
  return { ...files, 'cert-chain.pem': certificate, 'key.pem': privateKey, 'root-cert.pem': authority.certificate };
});
/** Longer than ten reads of the files, also on a busy host: a set that changes during each of ten attempts is used as read. */
const paceMs = 250;
const times = 100;

let folder: string;
let mount: SwitchedMount;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-switched-'));
  mount = await switchedMount(folder, versions, paceMs);
});

afterEach(async () => {
  await mount.stop();
  rmSync(folder, { recursive: true });
});

it('reads matching certificate and key while Kubernetes switches their directory', async () => {
  const seenChains = new Set<string>();
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  for (let i = 0; i < times || (seenChains.size < versions.length && i < 100 * times); i++) {
    seenChains.add((await readPair(files)).chain);
  }
  expect(seenChains.size).toBe(versions.length);
});

it('reads all files of a certificate directory from one version while Kubernetes switches it', async () => {
  for (let i = 0; i < times; i++) expect((await digestDirectories([folder])).problems).toEqual([]);
});

it('reads a matching client certificate and key for the control plane while Kubernetes switches their directory', async () => {
  const credentials = new ControlPlaneCredentials({
    config: { controlPlaneAuthPolicy: 'MUTUAL_TLS', discoveryAddress: 'istiod:15012', proxyMetadata: {} },
    env: { PROV_CERT: folder },
  });
  for (let i = 0; i < times; i++) {
    const { description: shownDescription } = await credentials.read('xds', 'istiod.istio-system.svc:15012');
    expect(shownDescription).toBe(`certificate ${folder}/cert-chain.pem`);
  }
});
