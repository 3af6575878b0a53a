export class XdsActivity {
  requests = 0;
  responses = 0;
  dropped = 0;
  connectionFailures = 0;
  /** Counts streams that failed, or that the control plane ended. */
  readonly upstreamEnds = { error: 0, cancelled: 0 };
  /** Counts streams that Envoy ended, or that were ended because of invalid or unread messages. */
  readonly downstreamEnds = { error: 0, cancelled: 0 };
  /** Last error of the control plane; empty after a response. */
  trouble = '';
}
