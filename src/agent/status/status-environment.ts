import type { DnsNames } from '../../runtime/dns/dns-names.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { DebuggerAccess } from '../../runtime/trace/debugger-access.ts';
import type { TraceEndpoint } from '../../runtime/trace/trace-endpoint.ts';
import type { AdminConnector } from '../admin/admin-client.ts';
import type { ApplicationPorts } from '../admin/application-listeners.ts';
import type { ServingPorts } from '../envoy/serving-envoy.ts';
import type { KeptPorts } from '../ports/kept-ports.ts';
import type { AgentMetrics } from './agent-metrics.ts';
import type { ApplicationProber } from './application-prober.ts';
import type { MetricsTarget } from './merged-metrics.ts';

export interface StatusServerEnvironment {
  readonly adminAt: AdminConnector;
  /** Used before the first Envoy serves. */
  readonly adminPort: number;
  readonly runsEnvoy: boolean;
  readonly metrics: AgentMetrics;
  /** The serving Envoy can be probed at these ports without its admin interface. */
  readonly ports: ServingPorts;
  readonly newestEpoch: () => string | undefined;
  readonly log: Logger;
  readonly prober: ApplicationProber;
  readonly applicationMetrics: readonly MetricsTarget[];
  /** A sidecar drains only inbound listeners, because its workload may still be finishing. */
  readonly drain: 'inboundonly' | 'all';
  /** Returns `undefined` without a DNS server or before the first name table. */
  readonly names?: () => DnsNames | undefined;
  readonly access: DebuggerAccess;
  readonly profiling: boolean;
  readonly heapSnapshots: boolean;
  readonly metricsForThisHost: boolean;
  readonly application: ApplicationPorts;
  /** Returns why peers reject the workload's certificate because of its dates, otherwise `undefined`. Absent without secret server. */
  readonly certificateProblem?: () => string | undefined;
  readonly trace?: TraceEndpoint;
  /** Starts the currently installed agent, which then replaces this one. Absent if no launcher can start it. */
  readonly orderSuccessor?: () => void;
  readonly host?: string;
  /**
   * `later`: the other agent responds until this one has an Envoy. `first`: no other process may use the port at the start. Absent: the port is not
   * shared.
   */
  readonly shares?: 'first' | 'later';
  /** Set if the port stays open when this agent exits. */
  readonly kept?: KeptPorts;
}
