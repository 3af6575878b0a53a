/** Log lines of a replica without a lasting error: no warnings, and the reviewed lines (test/transcripts). */

import { expect, it } from 'vitest';
import { customResourceDefinitions } from '../../src/discovery/kubernetes/api-resource.ts';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { faultyProxy } from '../fixtures/faulty-proxy.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf } from '../harness/logged-line.ts';
import { expectTranscript, problemLines } from '../harness/transcript.ts';
import { givenOwnServer } from './given-cluster.ts';
import { definitionOf } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const replicas = new Replicas(cluster);

it('no warning is logged for a start in a cluster, a new CRD, or an API server that is lost and recovers', async () => {
  const api = await faultyProxy(new URL(ownServer.server.url));
  const { program, httpPort } = await replicas.start('one', undefined, { ...cluster.address, url: api.url.href }, [
    '--log_as_json',
  ]);
  const leaders = (): number => linesOf(program.lines, 'leader.elected').length;
  await eventually('it leads', () => leaders() === 8);
  const outputs = [{ program: 'replica', lines: program.lines }];
  expect(problemLines(outputs)).toEqual([]);

  await cluster.apply(customResourceDefinitions, definitionOf('Sidecar', ['v1']));
  const sidecars = {
    group: 'networking.istio.io',
    version: 'v1',
    plural: 'sidecars',
    kind: 'Sidecar',
    namespaced: true,
  };
  const spec = { outboundTrafficPolicy: { mode: 'ALLOW_ANY' } };
  await eventually('one is written', () => cluster.apply(sidecars, { metadata: { name: 'all' }, spec }));
  const headers = { authorization: `Bearer ${readDebuggerToken(httpPort)}` };
  const configuration = async () => (await fetch(`http://127.0.0.1:${httpPort}/debug/configz`, { headers })).text();
  await eventually('it is read', async () => /"name": ?"all"/.test(await configuration()));

  api.refuse();
  await eventually('the loss is logged', () => linesOf(program.lines, 'kubernetes.unresponsive').length > 0);
  await api.accept();
  await eventually('the server is regained', () => linesOf(program.lines, 'kubernetes.responsive').length > 0);
  await cluster.apply(sidecars, { metadata: { name: 'late' }, spec });
  await eventually('what came later is read', async () => /"name": ?"late"/.test(await configuration()));
  await program.stop();
  expect(problemLines(outputs)).toEqual([]);
  expectTranscript('api-server-away', outputs);
});

it('a CRD without a known version is logged as a warning with the versions', async () => {
  const { program } = await replicas.start('two', undefined, undefined, ['--log_as_json']);
  await cluster.apply(customResourceDefinitions, definitionOf('EnvoyFilter', ['v9']));
  const warned = await eventually('it is logged', () =>
    program.lines
      .map((line) => JSON.parse(line) as Record<string, string>)
      .find(({ event }) => event === 'kind.unserved'),
  );
  expect(warned).toMatchObject({ level: 'warn', resource: 'envoyfilters.networking.istio.io', versions: 'v1alpha3' });
});
