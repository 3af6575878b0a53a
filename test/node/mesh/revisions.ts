/** Two concurrent revisions of the control plane. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { podsOf, readyPods } from '../workloads.ts';
import type { InstalledMesh, Release } from './installed-mesh.ts';
import { rollOut } from './rollouts.ts';

const revision = 'canary';

/**
 * @param mesh mesh with client and two pods of server, of the default revision
 * @param values chart values in addition to the revision
 */
export function testRevisions(mesh: () => InstalledMesh, values: Release['values']): void {
  const revisionsOf = async (app: string, count: number): Promise<Set<string | undefined>> => {
    const pods = await readyPods(mesh().node, app, count);
    return new Set(pods.map(({ metadata }) => metadata.annotations?.['istio.io/rev']));
  };
  /** Restarts the Deployments one after the other. */
  const move = async (to: string): Promise<void> => {
    const { node } = mesh();
    await mesh().startLoad('http://server/slow');
    await rollOut(node, { name: 'server' });
    expect(await revisionsOf('server', 2)).toEqual(new Set([to]));
    // Clients have the other revision.
    const { sent, failed } = await eventually('requests are sent to the moved pods', async () => {
      const load = await mesh().load();
      return load.sent > 50 && load;
    });
    await mesh().results();
    expect(failed).toEqual([]);
    console.error(`requests while server moved to ${to}: ${sent}`);
    await rollOut(node, { name: 'client' });
    expect(await revisionsOf('client', 1)).toEqual(new Set([to]));
    await eventually('the old client is removed', async () => (await podsOf(node, 'client')).length === 1);
    const { status, body } = await mesh().call('http://server');
    expect({ status, body }).toMatchObject({ status: 200 });
    expect(body).toContain('sa/client');
  };

  describe('two revisions of the control plane', () => {
    it('hand over a namespace and take it back without a failed request, also between pods of both', async () => {
      await mesh().install('istiod-canary', { values: { ...values, revision } });
      await mesh().label({ 'istio-injection': null, 'istio.io/rev': revision });
      await move(revision);
      await mesh().label({ 'istio-injection': 'enabled', 'istio.io/rev': null });
      await move('default');
    });
  });
}
