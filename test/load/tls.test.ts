import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { generateLoad } from './generator.ts';
import type { LoadPlan } from './plan.ts';

const authority = createAuthority();

function caFile(certificate: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'chartpilot-load-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'ca.crt');
  writeFileSync(file, certificate);
  return file;
}

/** Serves HTTP/1.1 and HTTP/2 over TLS; `rotate` changes the certificate for later connections. */
async function startServer() {
  const issue = () => authority.issue(['sample.localhost']);
  const first = issue();
  const server = http2.createSecureServer(
    { allowHTTP1: true, cert: first.certificate, key: first.privateKey },
    (_, response) => {
      response.setHeader('x-version', 'v1');
      response.end('end\n');
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return {
    port: (server.address() as AddressInfo).port,
    first: first.serialNumber,
    rotate() {
      const next = issue();
      server.setSecureContext({ cert: next.certificate, key: next.privateKey });
      return next.serialNumber;
    },
  };
}

function planFor(port: number, trusted: string, clients: LoadPlan['clients']): LoadPlan {
  const target = { host: '127.0.0.1', port, authority: 'sample.localhost', caFile: caFile(trusted) };
  return { target, clients, maxDurationMs: 5_000 };
}

test('every kind of client works over TLS and reports the presented certificate', async () => {
  const server = await startServer();
  const clients = (['ka', 'slow', 'new', 'h2', 'stream'] as const).map((kind) => ({ kind, count: 1, pauseMs: 5 }));
  const report = await generateLoad({ ...planFor(server.port, authority.certificate, clients), maxRequests: 30 })
    .finished;
  expect(report).toMatchObject({ total: 30, failed: 0, versions: { v1: 30 } });
  expect(Object.keys(report.kinds).sort()).toEqual(['h2', 'ka', 'new', 'slow', 'stream']);
  expect(report.certificates.map(({ serialNumber }) => serialNumber)).toEqual([server.first]);
});

test('a new certificate is recorded for later connections', async () => {
  const server = await startServer();
  const load = generateLoad(planFor(server.port, authority.certificate, [{ kind: 'new', count: 1, pauseMs: 1 }]));
  await expect.poll(() => load.report().certificates.length).toBe(1);
  const second = server.rotate();
  await expect.poll(() => load.report().certificates.length).toBe(2);
  const report = await load.stop();
  expect(report.failed).toBe(0);
  expect(report.certificates.map(({ serialNumber }) => serialNumber)).toEqual([server.first, second]);
  expect(report.certificates[1]!.firstSeenMs).toBeGreaterThan(report.certificates[0]!.firstSeenMs);
});

test('a certificate of another authority makes the connection fail', async () => {
  const server = await startServer();
  const other = createAuthority('another authority').certificate;
  const plan = { ...planFor(server.port, other, [{ kind: 'new', count: 1 }]), maxRequests: 1 } as const;
  const report = await generateLoad(plan).finished;
  expect(report.kinds.new!.failures).toMatchObject([{ phase: 'connect', reusedConnection: false }]);
});
