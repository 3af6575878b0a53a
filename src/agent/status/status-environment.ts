/** What the status server is given by the agent. */

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
  /** Where that is which counts before any Envoy has served. */
  readonly adminPort: number;
  /** False: there is no Envoy to ask for metrics. */
  readonly runsEnvoy: boolean;
  readonly metrics: AgentMetrics;
  /** Where else than at its admin interface the serving Envoy can be asked. */
  readonly ports: ServingPorts;
  /** The newest Envoy that has a process; undefined: none has. */
  readonly newest: () => string | undefined;
  readonly log: Logger;
  readonly prober: ApplicationProber;
  /** Where the application's own metrics are. */
  readonly applicationMetrics: readonly MetricsTarget[];
  /** How Envoy lets connections go that come from outside: a sidecar's workload may still be finishing. */
  readonly drain: 'inboundonly' | 'all';
  /** The control plane's names, where the workload asks here for them; undefined before the first table. */
  readonly names?: () => DnsNames | undefined;
  /** Of the pages that are for callers with the debugger's token, and of those for any local user. */
  readonly access: DebuggerAccess;
  /** Whether profiles are served. */
  readonly profiling: boolean;
  /** Whether heap snapshots are among them. */
  readonly heapSnapshots: boolean;
  /** Whether nobody else may ask for metrics. */
  readonly metricsForThisHost: boolean;
  /** What Envoy must serve of the workload before this proxy is ready. */
  readonly application: ApplicationPorts;
  /** Why peers refuse the workload's certificate by its dates; `undefined` if they do not, or there is none. Absent: no secrets here. */
  readonly certificateProblem?: () => string | undefined;
  /** Absent: the trace is not offered. */
  readonly trace?: TraceEndpoint;
  /** Has the agent that is installed by now started in this one's place. Absent: nobody could start it. */
  readonly orderSuccessor?: () => void;
  /** All addresses unless said otherwise. */
  readonly host?: string;
  /**
   * The port is shared with the agent that takes this one's place, or whose place this one takes. `later`: that one answers until this
   * agent has an Envoy to ask. `first`: nobody else may have the port at the start. Absent: it is this agent's alone.
   */
  readonly shares?: 'first' | 'later';
  /** The port is one that stays open when this agent ends. */
  readonly kept?: KeptPorts;
}
