import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, setup } from 'xstate';
import { createAuthority } from '../../../test/certs/authority.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { parseBundle, storedBundle } from './stored-bundle.ts';
import { xdsServer } from './xds-server.ts';
import { XdsStreams } from './xds-streams.ts';

const authority = createAuthority();
const bundle = toBinary(ProxyConfigSchema, create(ProxyConfigSchema, { caCertificatesPem: [authority.certificate] }));

/** The first event of a server that starts with this bundle. */
async function firstEventWith(bundle: Uint8Array | undefined): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'bundle-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const events: string[] = [];
  const server = xdsServer({ streams: new XdsStreams(), storedBundle: () => bundle });
  const parent = setup({ actors: { server } }).createMachine({
    invoke: { src: 'server', input: { socket: join(directory, 'XDS') } },
    on: { '*': { actions: ({ event }) => void events.push(event.type) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  await eventually('it listens', () => events.includes('socket.listening'), { everyMs: 1 });
  return events;
}

test("provides the previous agent's roots before Envoy can subscribe", async () => {
  expect(await firstEventWith(bundle)).toEqual(['trust-bundle.received', 'socket.listening']);
  expect(parseBundle(bundle)?.roots).toHaveLength(1);
});

test.each([
  ['the file is missing', undefined],
  ['the file is empty', new Uint8Array()],
  ['the file is truncated', bundle.subarray(0, 100)],
  ['the file has another format', Buffer.from('{"roots": []}')],
])('starts without previous roots if %s', async (_, bundle) => {
  expect(storedBundle(bundle)).toBeUndefined();
  expect(await firstEventWith(bundle)).toEqual(['socket.listening']);
});
