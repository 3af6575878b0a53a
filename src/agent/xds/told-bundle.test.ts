import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { createAuthority } from '../../../test/certs/authority.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { bundleIn, keptBundle } from './told-bundle.ts';
import { xdsServer } from './xds-server.ts';
import { XdsStreams } from './xds-streams.ts';

const authority = createAuthority();
const told = toBinary(ProxyConfigSchema, create(ProxyConfigSchema, { caCertificatesPem: [authority.certificate] }));

/** What the server of an agent says that begins with this. */
async function saidWith(bundle: Uint8Array | undefined): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'bundle-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const said: string[] = [];
  const server = xdsServer({ streams: new XdsStreams(), keptBundle: () => bundle });
  const parent = setup({ actors: { server } }).createMachine({
    invoke: { src: 'server', input: { socket: join(directory, 'XDS') } },
    on: { '*': { actions: ({ event }) => void said.push(event.type) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  await eventually('it listens', () => said.includes('socket.listening'), { everyMs: 1 });
  return said;
}

test('roots that an agent before this one was told are known before Envoy can ask', async () => {
  expect(await saidWith(told)).toEqual(['trust-bundle.received', 'socket.listening']);
  expect(bundleIn(told)?.roots).toHaveLength(1);
});

test.each([
  ['there is none', undefined],
  ['it is empty', new Uint8Array()],
  ['it was cut off', told.subarray(0, 100)],
  ['it is something else', Buffer.from('{"roots": []}')],
])('an agent begins without them where %s', async (_, bundle) => {
  expect(keptBundle(bundle)).toBeUndefined();
  expect(await saidWith(bundle)).toEqual(['socket.listening']);
});
