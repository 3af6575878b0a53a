/** The agent's xDS proxy without the rest of the agent, in the test's process, with its real machines and effects. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnyEventObject, fromCallback, sendTo, setup } from 'xstate';
import type { ProbeTimes } from '../../machines/agent/xds/workload-health.machine.ts';
import type { ConnectionCredentials } from '../../src/agent/identity/control-plane-credentials.ts';
import type { UpstreamEnvironment } from '../../src/agent/xds/upstream.ts';
import { XdsActivity } from '../../src/agent/xds/xds-activity.ts';
import { xdsProxyWithEffects } from '../../src/agent/xds/xds-proxy.effects.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { defaultGrpcLimits, type GrpcConnectionLimits } from '../../src/runtime/grpc/grpc-client.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { eventually } from './eventually.ts';

export interface XdsProxyOptions extends Partial<Omit<UpstreamEnvironment, 'streams' | 'credentials' | 'limits'>> {
  readonly credentials?: ConnectionCredentials;
  readonly limits?: Partial<GrpcConnectionLimits>;
  /** The result reported for received roots; `null` for none. */
  readonly bundles?: 'served' | null;
  /** When to probe whether the workload can serve; absent: never. */
  readonly probe?: ProbeTimes;
  /** Whether streams are those of gRPC without a proxy. Default false. */
  readonly proxyless?: boolean;
  /** Returns the reason of a failed probe; empty if the workload can serve. */
  readonly probeWorkload?: () => Promise<string>;
}

export interface RunningXdsProxy {
  readonly socket: string;
  readonly activity: XdsActivity;
  readonly records: readonly TraceRecord[];
  /** Events that the agent received. */
  readonly receivedEvents: readonly AnyEventObject[];
  events(type: string): AnyEventObject[];
  stop(): void;
}

const runningProxies = new Set<RunningXdsProxy>();

/** Stops all proxies of the test; for `afterEach`. */
export function stopXdsProxies(): void {
  for (const proxy of runningProxies) proxy.stop();
}

/** A proxy that forwards to the control plane at this address, `host:port`. */
export async function startXdsProxy(discoveryAddress: string, options: XdsProxyOptions = {}): Promise<RunningXdsProxy> {
  const {
    credentials = { headers: {}, description: 'nothing' },
    limits,
    bundles = null,
    probe = null,
    proxyless = false,
    ...environment
  } = options;
  const folder = mkdtempSync(join(tmpdir(), 'xds-'));
  const socket = join(folder, 'XDS');
  const activity = new XdsActivity();
  const records: TraceRecord[] = [];
  const receivedEvents: AnyEventObject[] = [];
  const xdsProxy = xdsProxyWithEffects({
    discoveryAddress,
    credentials: async () => credentials,
    headers: {},
    activity,
    log: silentLogger,
    trustBundles: false,
    limits: { ...defaultGrpcLimits, ...limits },
    ...environment,
  });
  const agent = setup({
    types: { events: {} as AnyEventObject },
    actors: {
      xdsProxy,
      secrets: fromCallback<AnyEventObject>(({ receive, system }) =>
        receive((event) => {
          receivedEvents.push(event);
          if (bundles === 'served') system.get('xds-proxy').send({ type: 'trust-bundle.served', hash: event.hash });
        }),
      ),
    },
    actions: {
      start: sendTo('xds-proxy', { type: 'xds.start' }),
      note: (_, { event }: { event: AnyEventObject }) => void receivedEvents.push(event),
    },
  }).createMachine({
    id: 'agent',
    entry: 'start',
    invoke: [
      { id: 'secrets', src: 'secrets', systemId: 'secrets' },
      {
        id: 'xds-proxy',
        src: 'xdsProxy',
        systemId: 'xds-proxy',
        input: { socket, hasSecrets: true, probe, proxyless },
      },
    ],
    on: {
      '*': { actions: { type: 'note', params: ({ event }) => ({ event }) } },
    },
  });
  const recorder = createRecorder({ program: 'pilot-agent' });
  recorder.observe((record) => records.push(record));
  const actor = startRoot(agent, { id: 'agent', input: undefined, recorder, onError: () => {} });
  const proxy: RunningXdsProxy = {
    socket,
    activity,
    records,
    receivedEvents,
    events: (type) =>
      records.flatMap((record) => (record.kind === 'event' && record.event.type === type ? [record.event] : [])),
    stop: () => {
      runningProxies.delete(proxy);
      actor.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  runningProxies.add(proxy);
  await eventually('the xDS proxy listens', () => receivedEvents.some(({ type }) => type === 'xds.listening'));
  return proxy;
}
