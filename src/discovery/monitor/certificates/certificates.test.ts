/** Tests the page and the command that list certificates. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ControlPlane, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { certificatesCommand } from '../../../cli/commands/remote/certificates.ts';
import { Turns } from '../../../runtime/turns.ts';
import { WorkloadLedger } from '../../ca/ledger/workload-ledger.ts';
import { certificatesText } from './certificates-text.ts';
import { type CertificatesView, certificatesView } from './known-certificates.ts';

const hourMs = 3_600_000;
const start = Date.parse('2026-11-29T14:00:00Z');

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-certificates-'));
});

afterEach(async () => {
  await stopControlPlanes();
  rmSync(root, { recursive: true });
});

it('the certificates page lists certificates of the authority, ports and Secrets by expiry, without keys', async () => {
  const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, { SELF_SIGNED_CA_DIR: root });
  await plane.ready();
  const pem = readFileSync(join(root, 'root-cert.pem')).toString('base64');
  const secret = (name: string, data: string): string =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}, namespace: shop}\ntype: kubernetes.io/tls\ndata: ${data}\n`;
  plane.write('a.yaml', secret('front', `{tls.crt: ${pem}, tls.key: aGlkZGVu}`));
  plane.write('b.yaml', secret('broken', '{tls.crt: aGlkZGVu, tls.key: aGlkZGVu}'));
  const page = async (): Promise<CertificatesView> => (await plane.get('/debug/certificates')).json();
  await eventually('the Secrets are read', async () => (await page()).unread.length === 1);
  const { certificates, counts, unread } = await page();
  expect(counts).toEqual({ authority: 1, server: 1, secret: 1 });
  expect(unread).toEqual(['Secret shop/broken: tls.crt has no certificate']);
  expect(certificates.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual([
    expect.stringMatching(/^authority /),
    'secret shop/front tls.crt',
    'server secure xDS port and webhooks',
  ]);
  expect(certificates.map(({ expires }) => expires)).toEqual(certificates.map(({ expires }) => expires).sort());
  let text = '';
  const from = `127.0.0.1:${plane.port('http.listening')}`;
  await certificatesCommand((chunk) => {
    text += chunk;
  }).parseAsync(['--from', from], { from: 'user' });
  expect(text).toMatch(/^known: 1 authority, 1 server, 1 secret; the next to expire:\n/);
  expect(text).toMatch(/Z {2}in \d+ d {2}secret +shop\/front tls\.crt +renewed by the owner of the Secret\n/);
  expect(text).not.toContain('aGlkZGVu');
  expect((await plane.get('/debug/certificates?limit=0')).status).toBe(400);
});

it('the certificates page lists workloads by the expiry of their newest certificate', async () => {
  const ledger = new WorkloadLedger({ maxLeafMs: 24 * hourMs });
  const issue = (node: string, hours: number): void =>
    ledger.apply({
      issued: {
        ...{ identity: 'spiffe://td/ns/shop/sa/cart', node, authority: 'root' },
        ...{ serialNumber: `${node}${hours}`, endsAt: start + hours * hourMs },
      },
    });
  issue('a', 2);
  issue('a', 24);
  issue('b', 3);
  issue('c', -1);
  issue('d', 40);
  const view = await certificatesView(
    { trustedRoots: [], secrets: [], workloads: ledger.upcomingExpiries(start, 2) },
    { now: new Date(start), max: 2, turns: new Turns() },
  );
  expect(certificatesText(view)).toBe(`known: 3 workload; the next to expire:
2026-11-29T17:00:00.000Z  in 3 h   workload  spiffe://td/ns/shop/sa/cart (b)  renewed by its agent
2026-11-30T14:00:00.000Z  in 24 h  workload  spiffe://td/ns/shop/sa/cart (a)  renewed by its agent
`);
});
