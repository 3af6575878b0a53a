/** The status port with scripted responses of its machine. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createActor, type EventObject, setup } from 'xstate';
import type { EnvoyProbe, ReadinessRespond, StatusHttpOrder } from '../../machines/agent/status-protocol.ts';
import type { ApplicationPorts } from '../../src/agent/admin/application-listeners.ts';
import { AgentMetrics } from '../../src/agent/status/agent-metrics.ts';
import { ApplicationProber } from '../../src/agent/status/application-prober.ts';
import type { ApplicationProbes } from '../../src/agent/status/application-probes.ts';
import type { MetricsTarget } from '../../src/agent/status/merged-metrics.ts';
import { statusServer } from '../../src/agent/status/status-server.ts';
import type { DnsNames } from '../../src/runtime/dns/dns-names.ts';
import { createLogger, silentLogger } from '../../src/runtime/output/log.ts';
import { DebuggerAccess } from '../../src/runtime/trace/debugger-access.ts';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { TraceEndpoint } from '../../src/runtime/trace/trace-endpoint.ts';
import { TraceRing } from '../../src/runtime/trace/trace-ring.ts';
import { header } from '../fixtures/random-records.ts';
import { adminAt, freePort, temporaryFolder } from '../fixtures/real-envoy.ts';

export type ReceivedEvent = EventObject & Record<string, unknown>;

/** Serves the effect with a machine whose readiness is scripted, with or without Envoy. */
export async function servingStatus(options: {
  respond?: (event: ReceivedEvent) => EnvoyProbe | ReadinessRespond;
  port?: number;
  host?: string;
  adminPort?: number;
  trace?: TraceEndpoint;
  newest?: () => string | undefined;
  metrics?: AgentMetrics;
  probes?: ApplicationProbes;
  applicationMetrics?: readonly MetricsTarget[];
  profiling?: boolean;
  heapSnapshots?: boolean;
  access?: DebuggerAccess;
  withTrace?: boolean;
  runsEnvoy?: boolean;
  metricsForThisHost?: boolean;
  application?: ApplicationPorts;
  names?: () => DnsNames | undefined;
  orderSuccessor?: () => void;
  certificateProblem?: () => string | undefined;
}): Promise<{
  url: string;
  runDir: string;
  receivedEvents: ReceivedEvent[];
  log: string[];
  order: (order: StatusHttpOrder) => void;
  stop: () => void;
}> {
  const runDir = temporaryFolder();
  onTestFinished(() => runDir[Symbol.dispose]());
  const access = options.access ?? new DebuggerAccess({ runDir: runDir.path });
  const trace = options.trace ?? (options.withTrace ? traceOf(access) : undefined);
  const receivedEvents: ReceivedEvent[] = [];
  const log: string[] = [];
  const http = statusServer({
    adminAt,
    adminPort: options.adminPort ?? (await freePort()),
    runsEnvoy: options.runsEnvoy ?? true,
    metrics: options.metrics ?? new AgentMetrics(),
    ports: { host: '127.0.0.1', port: undefined },
    newestEpoch: options.newest ?? (() => undefined),
    applicationMetrics: options.applicationMetrics ?? [],
    drain: 'inboundonly',
    access,
    profiling: options.profiling ?? true,
    heapSnapshots: options.heapSnapshots ?? false,
    metricsForThisHost: options.metricsForThisHost ?? false,
    application: options.application ?? { ports: [], addresses: [] },
    ...(options.names && { names: options.names }),
    ...(options.certificateProblem && { certificateProblem: options.certificateProblem }),
    ...(options.orderSuccessor && { orderSuccessor: options.orderSuccessor }),
    prober: new ApplicationProber(
      options.probes ?? new Map(),
      { destination: '127.0.0.1', source: undefined, http2: true },
      silentLogger,
    ),
    log: createLogger({ write: (line) => log.push(line.trimEnd()) }).scope('status'),
    host: options.host ?? '127.0.0.1',
    ...(trace && { trace }),
  });
  const parent = setup({ actors: { http } }).createMachine({
    invoke: { id: 'http', src: 'http', input: { port: options.port ?? 0 } },
    on: {
      '*': {
        actions: ({ event, self }) => {
          receivedEvents.push(event as ReceivedEvent);
          const response = options.respond?.(event as ReceivedEvent);
          if (response !== undefined) self.getSnapshot().children.http?.send(response);
        },
      },
    },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  while (!receivedEvents.some((event) => event.type.startsWith('http.'))) await sleep(5);
  const { port } = receivedEvents[0] as { port?: number };
  runDirs.set(`http://127.0.0.1:${port}`, runDir.path);
  return {
    url: `http://127.0.0.1:${port}`,
    runDir: runDir.path,
    receivedEvents,
    log,
    order: (order) => actor.getSnapshot().children.http?.send(order),
    stop: () => void actor.stop(),
  };
}

const runDirs = new Map<string, string>();

/** The header of a caller that may read the token file of a port that {@link servingStatus} opened. */
export function authorizationFor(url: string): string {
  const runDir = runDirs.get(url);
  if (runDir === undefined) throw new Error(`${url} was not opened here`);
  return `Bearer ${readDebuggerToken(Number(new URL(url).port), { runDir })}`;
}

function traceOf(access: DebuggerAccess): TraceEndpoint {
  const ring = new TraceRing(10);
  ring.write(header);
  return new TraceEndpoint({ ring, mode: 'on', access, log: silentLogger });
}
