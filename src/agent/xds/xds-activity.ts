/**
 * What goes through the xDS proxy, for metrics and for people who ask what Envoy waits for (spec/agent.md §6.5). Plain numbers: they
 * are read when somebody asks.
 */
export class XdsActivity {
  /** Messages of Envoys that went to the control plane. */
  requests = 0;
  /** Messages of the control plane that went to Envoys. */
  responses = 0;
  /** Messages of the control plane that are for nobody here. */
  dropped = 0;
  /** Connections that could not be had. */
  connectionFailures = 0;
  /** Streams that the control plane ended, or that broke. */
  readonly upstreamEnds = { error: 0, cancelled: 0 };
  /** Streams that Envoy ended, and those that were ended for what it sent or did not read. */
  readonly downstreamEnds = { error: 0, cancelled: 0 };
  /** Why the control plane could not be had last, or broke off; empty: it has answered since. */
  trouble = '';
}
