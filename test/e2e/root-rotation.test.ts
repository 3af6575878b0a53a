/** The root of a mesh is rotated under load: everybody is told by the control plane, and nobody is cut off. */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh;

/** What `GET /debug/authorityz` says. */
interface AuthorityPage {
  readonly stage: string;
  readonly signer: { readonly id: string; readonly serialNumber: string };
  readonly roots: readonly { readonly serialNumber: string }[];
}

beforeAll(async () => {
  mesh = await startMesh({ mutualTls: true, env: { SECRET_TTL: '16s' } });
}, 120_000);

afterAll(() => conclude(mesh));

async function asked(method: 'GET' | 'POST', query = ''): Promise<string> {
  const address = `http://127.0.0.1:${mesh.discovery!.httpPort}/debug/authorityz${query}`;
  const response = await fetch(address, { method, signal: AbortSignal.timeout(5_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

const authority = async (): Promise<AuthorityPage> => JSON.parse(await asked('GET')) as AuthorityPage;

/** Serial numbers of the roots that an Envoy trusts for workloads. */
async function trusted({ adminPort }: AgentProgram): Promise<string[]> {
  const address = `http://127.0.0.1:${adminPort}/config_dump?resource=dynamic_active_secrets`;
  const response = await fetch(address, { signal: AbortSignal.timeout(2_000) });
  const { configs } = (await response.json()) as {
    configs: { name: string; secret: { validation_context?: { trusted_ca: { inline_bytes: string } } } }[];
  };
  const roots = configs.find(({ name }) => name === 'ROOTCA')?.secret.validation_context?.trusted_ca.inline_bytes;
  const pem = Buffer.from(roots ?? '', 'base64').toString();
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return certificates.map((certificate) => new X509Certificate(certificate).serialNumber).sort();
}

/** Where the control plane is killed in each rotation; at length, in each stage. */
const rotations: readonly (readonly string[])[] = sized({
  quick: [['signing']],
  short: [['signing']],
  full: [[], ['trusting'], ['signing'], ['dropping']],
});

test.each(rotations.map((kills) => [kills.join(' and ') || 'nowhere', kills] as const))(
  'the next root is trusted before anybody has a certificate of it; the control plane is killed in: %s',
  async (_, kills) => {
    const before = await authority();
    expect(before.stage).toBe('steady');
    const envoys = [mesh.gateway!, mesh.sidecar!];
    const pids = (): number[] => envoys.flatMap((agent) => mesh.envoysOf(agent).map(({ pid }) => pid));
    const started = pids();
    const load = await mesh.startLoad({
      target: mesh.httpTarget,
      clients: [
        { kind: 'ka', count: 2, pauseMs: 5 },
        { kind: 'new', count: 1, pauseMs: 10 },
        { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
      ],
      maxDurationMs: 150_000,
    });
    const left = new Set(kills);
    const killAt = async (stage: string): Promise<void> => {
      if (!left.delete(stage)) return;
      const { program } = mesh.discovery!;
      process.kill(program.pid, 'SIGKILL');
      await program.exited;
      await mesh.startDiscovery();
    };
    await asked('POST', '?order=rotate');
    const page = await eventually(
      'the next root is the only one',
      async () => {
        const now = await authority();
        await killAt(now.stage);
        return now.stage === 'steady' && now.signer.id !== before.signer.id && now;
      },
      { deadlineMs: 60_000, everyMs: 20 },
    );
    const only = page.signer.serialNumber;
    for (const envoy of envoys) {
      await eventually(
        'an Envoy trusts it alone',
        async () => {
          const roots = await trusted(envoy);
          if (roots.join() !== only) throw new Error(`it trusts ${roots.join()}, not ${only}`);
          return true;
        },
        { deadlineMs: 20_000 },
      );
    }
    const report = await load.stop();
    expect(report.failed, JSON.stringify(report.kinds)).toBe(0);
    expect(report.total).toBeGreaterThan(500);
    // None of it has cost a restart.
    expect(pids()).toEqual(started);
  },
  180_000,
);
