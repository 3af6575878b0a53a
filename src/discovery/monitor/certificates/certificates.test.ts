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

const identity = 'spiffe://td/ns/shop/sa/cart';

/** A ledger, and its certificates as text. */
function workloadLedger() {
  const ledger = new WorkloadLedger({ maxLeafMs: 24 * hourMs });
  return {
    issue: (node: string, hours: number): void =>
      ledger.apply({
        issued: {
          ...{ identity, node, authority: 'root' },
          ...{ serialNumber: `${node}${hours}`, endsAt: start + hours * hourMs },
        },
      }),
    text: async (inUse: Readonly<Record<string, string>>, max = 10): Promise<string> => {
      const workloads = ledger.upcomingExpiries(start, max, ({ node }) => inUse[node]);
      const sources = { trustedRoots: [], secrets: [], workloads };
      return certificatesText(await certificatesView(sources, { now: new Date(start), max, turns: new Turns() }));
    },
  };
}

it('the certificates page lists workloads by the expiry of the certificate that they report', async () => {
  const { issue, text } = workloadLedger();
  issue('a', 2);
  issue('a', 24);
  issue('b', 3);
  issue('c', -1);
  issue('d', 40);
  expect(await text({ a: 'a24', b: 'b3', d: 'd40' }, 2)).toBe(`known: 3 workload; the next to expire:
2026-11-29T17:00:00.000Z  in 3 h   workload  ${identity} (b)  renewed by its agent
2026-11-30T14:00:00.000Z  in 24 h  workload  ${identity} (a)  renewed by its agent
`);
});

it('the certificates page lists the newest certificate of a workload that reports none as not confirmed, even if an earlier one expires later', async () => {
  const { issue, text } = workloadLedger();
  issue('a', 24);
  issue('a', 1);
  expect(await text({})).toBe(`known: 1 workload; the next to expire:
2026-11-29T15:00:00.000Z  in 1 h  workload  ${identity} (a)  renewed by its agent (use not confirmed)
use not confirmed: the workload does not report its certificate to this replica, so it may have a later one that another replica signed
`);
});

it('the certificates page lists no expiry for a workload that reports a certificate of another replica', async () => {
  const { issue, text } = workloadLedger();
  issue('a', 24);
  expect(await text({ a: '4A' })).toBe(
    'no certificate is known\nnot known: 1 workloads use certificates that other replicas signed: their lists have the expiry\n',
  );
});
