/** A real istioctl with the mesh: every row of docs/istioctl.md. */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { resourceOf } from '../../../src/discovery/kubernetes/api-resource.ts';
import { findOrBuild, istioctl } from '../../cluster/go-program.ts';
import { writeKubeconfig } from '../../cluster/mesh-objects.ts';
import { eventually } from '../../harness/eventually.ts';
import { podsOf } from '../workloads.ts';
import { type InstalledMesh, systemNamespace } from './installed-mesh.ts';
import { type IstioctlOutput, type IstioctlWorld, istioctlCommands } from './istioctl-commands.ts';
import { application } from './sample-application.ts';

/** Long, because the API server and the mesh run next to ten other programs. */
const limitMs = 300_000;

/** @param mesh mesh with pods of client and server */
export function testIstioctl(mesh: () => InstalledMesh): void {
  let binary: string;
  let world: IstioctlWorld;

  const run = (args: readonly string[]): Promise<IstioctlOutput> => {
    const { folder } = world;
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') };
    return new Promise((resolve) => {
      const options = { cwd: folder, env, timeout: limitMs, maxBuffer: 1 << 26 };
      execFile(binary, [...args], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
    });
  };

  describe('istioctl with chartpilot', () => {
    beforeAll(async () => {
      binary = await findOrBuild(istioctl, (line) => console.error(line));
      const { node } = mesh();
      const { cluster } = node;
      const folder = join(node.folder, 'istioctl');
      mkdirSync(join(folder, 'report'), { recursive: true });
      writeKubeconfig(join(folder, 'kubeconfig'), { address: cluster.address });
      const route = { hosts: ['server'], http: [{ route: [{ destination: { host: 'server' } }] }] };
      const virtualService = {
        ...{ apiVersion: 'networking.istio.io/v1', kind: 'VirtualService' },
        ...{ metadata: { name: 'server', namespace: cluster.namespace }, spec: route },
      };
      await cluster.apply(resourceOf('VirtualService'), virtualService);
      writeFileSync(join(folder, 'virtual-service.yaml'), JSON.stringify(virtualService));
      writeFileSync(join(folder, 'deployment.yaml'), application('injected', { namespace: cluster.namespace }));
      const nameOf = async (app: string, namespace = cluster.namespace): Promise<string> =>
        `${(await podsOf(node, app, namespace))[0]!.metadata.name}.${namespace}`;
      world = {
        ...{ namespace: cluster.namespace, folder },
        ...{ client: await nameOf('client'), server: await nameOf('server') },
        ...{ istiod: await nameOf('istiod', systemNamespace), nearby: '' },
      };
      const [first] = world.istiod.split('.');
      const nearby = await eventually('a proxy is connected to the first replica', async () => {
        const { stdout } = await run(['proxy-status']);
        const lines = stdout.split('\n').map((line) => line.split(/ +/));
        return lines.find(([, , istiod]) => istiod === first)?.[0];
      });
      world = { ...world, nearby };
    }, 3_600_000);

    for (const { row, args, check, code = 0 } of istioctlCommands) {
      it(`\`istioctl ${row}\` does what docs/istioctl.md states`, async () => {
        let output: IstioctlOutput = { code: -1, stdout: '', stderr: '' };
        // A change reaches the proxies a moment later.
        await eventually(
          row,
          async () => {
            output = await run(args(world));
            expect({ code: output.code, stderr: output.code === code ? '' : output.stderr }).toEqual({
              code,
              stderr: '',
            });
            check(output, world);
            return true;
          },
          { deadlineMs: limitMs },
        ).catch((error: unknown) => {
          throw new Error(`istioctl ${args(world).join(' ')}: ${JSON.stringify(output).slice(0, 4_000)}`, {
            cause: error,
          });
        });
      });
    }
  });
}
