/** Counters of the xDS proxy, for metrics and the debug interface (spec/agent.md §6.5). */
export class XdsActivity {
  /** Forwarded requests. */
  requests = 0;
  /** Forwarded responses. */
  responses = 0;
  /** Dropped responses. */
  dropped = 0;
  /** Failed connections. */
  connectionFailures = 0;
  /** Streams that the control plane ended, or that failed. */
  readonly upstreamEnds = { error: 0, cancelled: 0 };
  /** Streams that Envoy ended, and those that were ended for invalid or unread messages. */
  readonly downstreamEnds = { error: 0, cancelled: 0 };
  /** Last error of the control plane; empty after a response. */
  trouble = '';
}
