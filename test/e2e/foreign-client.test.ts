/**
 * Other implementations accept the authority's certificates: a gRPC client in Go with the messages of istio.io/api gets one certificate with its
 * token, and the next one with that certificate. go-spiffe accepts both as X.509-SVIDs, and OpenSSL does in strict mode.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { issueToken, localTokenKey } from '../../src/discovery/xds/access/local-tokens.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { CertificateCaller } from '../harness/certificate-caller.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';

let directory: string;
let client: string;
let reason = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'stranger-'));
  client = join(directory, 'client');
  const cwd = join(packageRoot(), 'test/harness/go-certificate-client');
  const built = spawnSync('go', ['build', '-mod=readonly', '-o', client, '.'], { cwd, encoding: 'utf8' });
  if (built.status !== 0) reason = built.error?.message ?? built.stderr.trim();
});
afterEach(stopControlPlanes);
afterAll(() => rmSync(directory, { recursive: true }));

it('a Go client gets its certificate, which go-spiffe and OpenSSL verify', async () => {
  expect(reason, 'this test needs Go (Debian: apt-get install golang) and a way to its modules').toBe('');
  const ca = join(directory, 'ca');
  const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, { SELF_SIGNED_CA_DIR: ca });
  await plane.ready();
  const order = { namespace: 'shop', serviceAccount: 'cart', audience: 'istio-ca', ttlSeconds: 600 };
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(directory, name), content);
    return join(directory, name);
  };
  const roots = file('roots', new CertificateCaller(ca).roots());
  const token = file('token', await issueToken(localTokenKey(join(ca, 'token.key')), order, new Date()));
  const outputFolder = join(directory, 'out');
  mkdirSync(outputFolder);
  const address = `127.0.0.1:${plane.port('ads.listening')}`;
  const args = { address, server: 'istiod.istio-system.svc', roots, token, out: outputFolder };
  const flags = Object.entries(args).map(([name, value]) => `-${name}=${value}`);
  // Asynchronous, because the control plane is in this process.
  const { stdout: output } = await promisify(execFile)(client, flags);
  const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
  expect(output.trim().split('\n')).toEqual([uri, uri]);
  const verify = [
    'verify',
    '-x509_strict',
    '-CAfile',
    join(outputFolder, 'roots.pem'),
    join(outputFolder, 'chain.pem'),
  ];
  expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toContain('OK');
});
