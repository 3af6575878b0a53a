/** Each stage of startup fails once for an external reason, without leaking resources. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../../test/certs/authority.ts';
import { ControlPlane, stopControlPlanes } from '../../test/harness/control-plane.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { linesOf } from '../../test/harness/logged-line.ts';
import type { DiscoveryFlags } from './options/discovery-flags.ts';

let portHolder: Server;
let takenPort: string;
let initialResources: Record<string, number>;

beforeAll(async () => {
  portHolder = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => portHolder.once('listening', resolve));
  takenPort = `127.0.0.1:${(portHolder.address() as { port: number }).port}`;
  // Measured once for all tests, so that a leak in one is not the baseline of the next.
  initialResources = resources();
});

afterAll(() => void portHolder.close());

afterEach(stopControlPlanes);

/** Active resources of the event loop by type: servers, watched files, timers. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const type of process.getActiveResourcesInfo()) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

/** Types with more resources than before the test. Files are closed asynchronously. */
async function leakedResources(): Promise<string[]> {
  await eventually('all is closed', () => heldResources().length === 0, { deadlineMs: 2_000 }).catch(() => {});
  return heldResources();
}

function heldResources(): string[] {
  return Object.entries(resources()).flatMap(([type, count]) => (count > (initialResources[type] ?? 0) ? type : []));
}

interface Certificates {
  readonly flags: DiscoveryFlags;
  readonly key: string;
}

function certificates(root: string): Certificates {
  mkdirSync(root, { recursive: true });
  const authority = createAuthority();
  const issuedCertificate = authority.issue(['127.0.0.1']);
  const file = (name: string, text: string): string => {
    writeFileSync(join(root, name), text);
    return join(root, name);
  };
  const key = file('key', issuedCertificate.privateKey);
  return {
    key,
    flags: {
      caCertFile: file('ca', authority.certificate),
      tlsCertFile: file('cert', issuedCertificate.certificate),
      tlsKeyFile: key,
      secureGRPCAddr: '127.0.0.1:0',
    },
  };
}

/** Runs a control plane that cannot start. */
async function startErrorOf(...startArgs: Parameters<typeof ControlPlane.starting>) {
  const plane = ControlPlane.starting(...startArgs);
  const { exitCode, trouble } = await plane.ended;
  expect(plane.records.some((record) => record.kind === 'event' && record.event.type === 'readiness.began')).toBe(
    false,
  );
  expect(plane.deviations()).toEqual([]);
  return { exitCode, trouble: trouble.join('\n') };
}

describe('the start of pilot-discovery', () => {
  it.each<[string, () => DiscoveryFlags, RegExp]>([
    [
      'environment',
      () => ({ kubeconfig: '/kube' }),
      /^environment: .*--kubeconfig: \/kube: no such file .* → pass the path/,
    ],
    ['HTTP server', () => ({ httpAddr: takenPort }), /^HTTP server: port in use: /],
    ['HTTP server, monitoring', () => ({ monitoringAddr: takenPort }), /^HTTP server: port in use: /],
    ['configuration sources', () => ({ registries: 'Kubernetes', configDir: '' }), /^configuration sources: .*cluster/],
    ['service registries', () => ({ registries: 'Eureka' }), /^service registries: .*Eureka is not supported/],
    [
      'configuration',
      () => ({ configDir: '/nonexistent/mesh' }),
      /^configuration: \/nonexistent\/mesh: .* → create a directory/,
    ],
    ['xDS server', () => ({ grpcAddr: takenPort }), /^xDS server: port in use: /],
  ])('fails at the stage %s', async (_, flags, expected) => {
    const { exitCode, trouble } = await startErrorOf(flags());
    expect(trouble).toMatch(expected);
    expect(exitCode).toBe(1);
    expect(await leakedResources()).toEqual([]);
  });

  it.each<[string, (created: Certificates) => DiscoveryFlags, RegExp]>([
    ['a file is missing', ({ flags }) => ({ ...flags, caCertFile: '/no/ca' }), /^server certificates: .*\/no\/ca/],
    [
      'the key belongs to another certificate',
      ({ flags, key }) => {
        writeFileSync(key, createAuthority().privateKey);
        return flags;
      },
      /^server certificates: .*does not match the certificate/,
    ],
    [
      'a file is not valid PEM',
      ({ flags, key }) => {
        writeFileSync(key, 'no key');
        return flags;
      },
      /^server certificates: .*is not valid PEM/,
    ],
    ['its port is in use', ({ flags }) => ({ ...flags, secureGRPCAddr: takenPort }), /^secure xDS server: port in use/],
  ])('fails at the TLS port if %s', async (_, damage, expected) => {
    const root = join(process.env.TMPDIR ?? '/tmp', `chartpilot-start-${process.pid}-${Date.now()}`);
    try {
      const { exitCode, trouble } = await startErrorOf(damage(certificates(root)));
      expect(trouble).toMatch(expected);
      expect(exitCode).toBe(1);
      expect(await leakedResources()).toEqual([]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it.each([['mesh', 'configSources: [{address: "fs://"}]', /^configuration sources: .*fs:\/\/ must have a directory/]])(
    'fails if the file %s contains the invalid setting %s',
    async (file, text, expected) => {
      const { trouble, exitCode } = await startErrorOf({}, ({ root }) => writeFileSync(join(root, file), text));
      expect(trouble).toMatch(expected);
      expect(exitCode).toBe(1);
      expect(await leakedResources()).toEqual([]);
    },
  );

  it('succeeds with invalid settings, and replaces these by defaults with a report', async () => {
    const plane = ControlPlane.starting({}, ({ root }) => {
      writeFileSync(join(root, 'mesh'), 'connectTimeout: soon\n');
      writeFileSync(join(root, 'meshNetworks'), 'networks: {west: {endpoints: [{fromCidr: everywhere}]}}\n');
    });
    await plane.ready();
    expect(linesOf(plane.lines, 'object.rejected', { place: /mesh:1/, reason: /connectTimeout/ })).toHaveLength(1);
    expect(linesOf(plane.lines, 'object.rejected', { place: /meshNetworks:1/, reason: /fromCidr/ })).toHaveLength(1);
  });

  it('leaks no resources after a successful run', async () => {
    const plane = await ControlPlane.serving();
    expect(heldResources()).toEqual(expect.arrayContaining(['TCPServerWrap', 'FSEventWrap']));
    plane.signal();
    expect(await plane.ended).toEqual({ exitCode: 0, trouble: [] });
    expect(await leakedResources()).toEqual([]);
  });
});
