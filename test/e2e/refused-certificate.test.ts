/** Certificates that the real Envoy rejects (RSA of 1024 bits), at the first start and as a replacement. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadAuthority } from '../certs/authority.ts';
import { swapMountedFiles } from '../certs/certificate-directory.ts';
import { eventually } from '../harness/eventually.ts';
import { Mesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

beforeAll(async () => {
  mesh = await Mesh.create({ sidecar: false, watchDelayMs: 200, drainMs: 1_000, parentShutdownMs: 2_000 });
});

afterAll(() => conclude(mesh));

function putRefusedCertificate(): void {
  const { authorityDirectory, directory, hosts } = mesh.certificates;
  const read = (name: string): string => readFileSync(join(authorityDirectory, name), 'utf8');
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const issuedCertificate = loadAuthority(read('ca.crt'), read('ca.key')).issue(hosts, weak);
  swapMountedFiles(directory, { 'tls.crt': issuedCertificate.certificate, 'tls.key': issuedCertificate.privateKey });
}

const readiness = async (): Promise<number> =>
  (await fetch(`http://127.0.0.1:${mesh.gateway!.statusPort}/healthz/ready`)).status;

const serves = async (serial: string): Promise<boolean> => (await probe(mesh.httpsTarget)).serialNumber === serial;

test('an Envoy that starts without its TLS listener is not ready, reports the reason, and becomes ready with the listener', async () => {
  putRefusedCertificate();
  await Promise.all([mesh.startSamples(), mesh.startDiscovery()]);
  const gateway = mesh.startGateway();
  // Envoy serves the accepted listeners.
  await mesh.waitForResponse(mesh.httpTarget);
  await eventually('it says why', () => gateway.program.output().includes('LIVE, but Envoy rejected 1 listener'));
  expect(gateway.program.output()).toContain('only RSA certificates with 2048-bit or larger keys are supported');
  expect(await readiness()).toBe(503);
  const serial = mesh.renewCertificate();
  await mesh.waitForAgent(gateway);
  await eventually('the good certificate is served', () => serves(serial));
});

test('a serving Envoy keeps its certificate when the new one is rejected, and stays ready', async () => {
  const serial = mesh.renewCertificate();
  await eventually('the good certificate is served', () => serves(serial));
  const previousPid = mesh.envoysOf(mesh.gateway!).at(-1)!.pid;
  putRefusedCertificate();
  await eventually('it is reported', () => mesh.gateway!.program.output().includes('(block 1: RSA 1024 bits)'));
  expect(await readiness()).toBe(200);
  expect(await serves(serial)).toBe(true);
  expect(mesh.envoysOf(mesh.gateway!).at(-1)!.pid).toBe(previousPid);
  const next = mesh.renewCertificate();
  await eventually('the next good one is served', () => serves(next));
});
