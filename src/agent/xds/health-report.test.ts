/** Tests the workload's health that the agent reports to the control plane on Envoy's streams. */
import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { clusterType, listenerType } from '../../../machines/discovery/xds/ads-types.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { startXdsProxy, stopXdsProxies } from '../../../test/harness/xds-proxy.ts';
import { ScriptedSource } from '../../../test/simulation/scripted-source.ts';
import { type AdsServer, createAdsServer } from '../../discovery/xds/ads-server.ts';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { GrpcConnection } from '../../runtime/grpc/grpc-client.ts';
import { frameOf } from '../../runtime/grpc/grpc-frames.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { type DiscoveryProtocol, methods } from './discovery-wire.ts';

afterEach(stopXdsProxies);

const node = { id: 'sidecar~10.0.0.1~a.b~b.svc' };
const probe = { initialDelayMs: 0, periodMs: 20, timeoutMs: 1_000, successThreshold: 1, failureThreshold: 1 };

/** A control plane that records the reported health: `healthy`, or the reason. */
class Listener {
  readonly reported: string[] = [];
  readonly #source = new ScriptedSource();
  #server: AdsServer | undefined;
  #port = 0;

  async listen(): Promise<string> {
    for (const type of [clusterType, listenerType]) this.#source.set(type, 'a');
    this.#server = createAdsServer({
      source: {
        openNode: (openedNode) => {
          const { resources } = this.#source.openNode(openedNode) as Extract<
            ReturnType<ScriptedSource['openNode']>,
            { resources: object }
          >;
          return {
            resources: { ...resources, healthReported: (failure) => void this.reported.push(failure ?? 'healthy') },
          };
        },
      },
      logger: silentLogger,
    });
    this.#port = (await this.#server.listen(`127.0.0.1:${this.#port}`)).port;
    return `127.0.0.1:${this.#port}`;
  }

  close(): void {
    this.#server?.close();
  }
}

async function startListenerAndProxy() {
  const plane = new Listener();
  const address = await plane.listen();
  onTestFinished(() => plane.close());
  const workload = { trouble: '' };
  const proxy = await startXdsProxy(address, { probe, probeWorkload: async () => workload.trouble });
  return { plane, workload, proxy };
}

async function envoy(socket: string, protocol: DiscoveryProtocol) {
  const connection = await GrpcConnection.open({ address: { path: socket } });
  onTestFinished(() => connection.close());
  const stream = connection.start(methods[protocol], { 'user-agent': '0@1' });
  stream.on('error', () => {}).resume();
  const schema = protocol === 'sotw' ? DiscoveryRequestSchema : DeltaDiscoveryRequestSchema;
  return {
    ask: (typeUrl: string) => stream.write(frameOf(toBinary(schema, create(schema, { node, typeUrl })))),
    ended: new Promise((resolve) => stream.once('close', resolve)),
  };
}

it.each(['sotw', 'delta'] as const)(
  'reports health after Envoy has requested listeners and after each change (%s)',
  async (protocol) => {
    const { plane, workload, proxy } = await startListenerAndProxy();
    const one = await envoy(proxy.socket, protocol);
    one.ask(clusterType);
    await eventually('the workload was found to be well', () => proxy.events('health.changed').length > 0);
    await eventually('clusters were answered', () => proxy.activity.responses > 0);
    expect(plane.reported).toEqual([]);
    one.ask(listenerType);
    await eventually('it is said', () => plane.reported.length > 0);
    workload.trouble = 'connection refused';
    await eventually('another word is said', () => plane.reported.length > 1);
    workload.trouble = '';
    await eventually('and another', () => plane.reported.length > 2);
    expect(plane.reported).toEqual(['healthy', 'connection refused', 'healthy']);
  },
);

it("reports the workload's current health to a restarted control plane", async () => {
  const { plane, workload, proxy } = await startListenerAndProxy();
  const one = await envoy(proxy.socket, 'delta');
  one.ask(listenerType);
  await eventually('it is said', () => plane.reported.length > 0);
  plane.close();
  await one.ended;
  workload.trouble = 'connection refused';
  await eventually('it is found out', () => proxy.events('health.changed').length > 1);
  expect(plane.reported).toEqual(['healthy']);
  await plane.listen();
  const secondEnvoy = await envoy(proxy.socket, 'delta');
  secondEnvoy.ask(listenerType);
  await eventually('it is said again', () => plane.reported.length > 1);
  expect(plane.reported).toEqual(['healthy', 'connection refused']);
});
