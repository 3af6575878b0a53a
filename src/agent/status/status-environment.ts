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
  /** Admin port before the first Envoy serves. */
  readonly adminPort: number;
  /** False if there is no Envoy to scrape. */
  readonly runsEnvoy: boolean;
  readonly metrics: AgentMetrics;
  /** Listeners by which the serving Envoy can be probed without its admin interface. */
  readonly ports: ServingPorts;
  /** The most recently started epoch with a process, if any. */
  readonly newestEpoch: () => string | undefined;
  readonly log: Logger;
  readonly prober: ApplicationProber;
  readonly applicationMetrics: readonly MetricsTarget[];
  /** Listeners that `/drain` drains. A sidecar drains only inbound ones, because its workload may still be finishing. */
  readonly drain: 'inboundonly' | 'all';
  /** Name table of the DNS server; `undefined` without a DNS server or before the first table. */
  readonly names?: () => DnsNames | undefined;
  readonly access: DebuggerAccess;
  readonly profiling: boolean;
  readonly heapSnapshots: boolean;
  readonly metricsForThisHost: boolean;
  /** Application ports that Envoy must serve before the proxy is ready. */
  readonly application: ApplicationPorts;
  /**
   * Why peers reject the workload's certificate because of its dates; otherwise `undefined`. Absent without secret server.
   */
  readonly certificateProblem?: () => string | undefined;
  /** Absent if the trace is not served. */
  readonly trace?: TraceEndpoint;
  /** Orders a start of the currently installed agent, which then replaces this one. Absent if no launcher can start it. */
  readonly orderSuccessor?: () => void;
  /** Default: all addresses. */
  readonly host?: string;
  /**
   * How the port is shared with the agent that replaces this one, or that this one replaces. `later`: the other agent responds until this one has
   * an Envoy. `first`: no other process may use the port at the start. Absent: not shared.
   */
  readonly shares?: 'first' | 'later';
  /** Set if the port stays open when this agent exits. */
  readonly kept?: KeptPorts;
}
