/** The oldest supported Envoy; in the long form also the newest, and a build without V8 (docs/envoy-versions.md). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { envoyVersion } from '../../src/agent/envoy/envoy-binary.ts';
import { envoySupport, envoyVersionIn, newestEnvoy, oldestEnvoy } from '../../src/model/node/envoy-build.ts';
import { oldestEnvoyVersion, otherEnvoyBinary, versionWithoutV8 } from '../fixtures/other-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { startMesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { caseNames } from '../networking/case.ts';
import { acceptanceOf, CaseCertificates } from '../networking/envoy-acceptance.ts';
import { conclude } from './conclude.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { gateway, object, serviceEntry, virtualService } from './features/harness/objects.ts';
import { respondingModule } from './features/wasm-module.ts';

const isFull = sized({ short: false, full: true });
const versions = sized({ short: [oldestEnvoyVersion], full: [oldestEnvoyVersion, versionWithoutV8] });

test('the supported range extends from the oldest to the newest tested Envoy version', () => {
  expect(envoyVersionIn(oldestEnvoyVersion)?.slice(0, 2)).toEqual(oldestEnvoy);
  expect(envoyVersionIn(envoyVersion)?.slice(0, 2)).toEqual(newestEnvoy);
  for (const version of versions) expect(envoySupport(envoyVersionIn(version))).toBe('supported');
});

describe.each(versions)('Envoy %s', (version) => {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-versions-'));
  let binary: string;
  let certificates: CaseCertificates;

  beforeAll(async () => {
    binary = (await otherEnvoyBinary(version)).path;
    certificates = new CaseCertificates();
  });

  afterAll(() => {
    certificates?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(caseNames())('accepts the generated configuration of the case "%s"', async (name) => {
    const { expected, ...actualAcceptance } = await acceptanceOf(name, certificates, binary);
    expect(actualAcceptance).toEqual({ ...expected, refusals: [], rejected: [], complaints: [] });
  });

  it('applies the failure policy of Wasm code while a newer Envoy runs the code', async () => {
    writeFileSync(join(folder, 'code.wasm'), respondingModule(418));
    const mesh = await FeatureMesh.start({
      proxies: { old: { binary }, new: { type: 'router', labels: { app: 'new' } } },
      explains: false,
    });
    try {
      const host = 'cart.shop.test';
      const backend = await mesh.http('v1');
      const [port, gatewayPort] = [await mesh.port(), await mesh.port()];
      const routes = [
        serviceEntry(host, { port, backends: [backend] }),
        gateway('new', { app: 'new' }, [{ port: gatewayPort, protocol: 'HTTP', hosts: [host] }]),
        virtualService(host, { gateways: ['new'], http: [{ route: [{ destination: { host } }] }] }),
      ];
      const apply = (...extraRoutes: string[]): Promise<void> =>
        mesh.apply([...routes, ...extraRoutes].join('\n---\n'));
      const statuses = async (): Promise<readonly number[]> => [
        (await mesh.request('old', { port, host })).status,
        (await mesh.request('new', { port: gatewayPort, host })).status,
      ];
      const plugin = (failStrategy: string): string =>
        object('extensions.istio.io/v1alpha1', 'WasmPlugin', 'shop', 'answers', {
          url: `file://${folder}/code.wasm`,
          failStrategy,
        });
      await apply(plugin('FAIL_CLOSE'));
      expect(await statuses()).toEqual([403, 418]);
      await apply(plugin('FAIL_OPEN'));
      await eventually('requests pass', async () => (await statuses())[0] === 200);
      const value = {
        name: 'code',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm',
          config: {
            vm_config: {
              runtime: 'envoy.wasm.runtime.v8',
              code: { local: { filename: join(folder, 'code.wasm') } },
            },
          },
        },
      };
      const patch = { applyTo: 'HTTP_FILTER', match: {}, patch: { operation: 'INSERT_FIRST', value } };
      await apply(object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'answers', { configPatches: [patch] }));
      await eventually('the filter is replaced', async () => (await statuses()).join() === '403,418');
      const status = JSON.parse(await mesh.page('/debug/push_status')) as Record<string, object>;
      expect(Object.keys(status.pilot_wasm_withheld!)).toEqual([`EnvoyFilter shop/answers ${version}`]);
      const proxies = JSON.parse(await mesh.page('/debug/proxyz')) as { envoy: string; envoyProblem?: string }[];
      expect(proxies.map(({ envoy, envoyProblem }) => [envoy, envoyProblem !== undefined]).sort()).toEqual([
        [version, true],
        [envoyVersion, false],
      ]);
    } finally {
      await mesh.stop();
    }
  });

  // Every version since 1.36 supports hot restarts.
  it.runIf(isFull)('is started, restarted and drained by the agent', async () => {
    const mesh = await startMesh({
      sidecar: false,
      drainMs: 1_000,
      parentShutdownMs: 3_000,
      agentArgs: ['--binaryPath', binary],
    });
    try {
      const [first] = mesh.envoysOf(mesh.gateway!);
      mesh.renewCertificate();
      await eventually('another epoch serves alone', async () => {
        const envoys = mesh.envoysOf(mesh.gateway!);
        return envoys.length === 1 && envoys[0]!.pid !== first!.pid;
      });
      await mesh.waitForResponse(mesh.httpsTarget);
    } finally {
      await conclude(mesh);
    }
  });
});
