export class XdsActivity {
  requests = 0;
  responses = 0;
  dropped = 0;
  connectionFailures = 0;
  /** Streams that failed, or that the control plane ended. */
  readonly upstreamEnds = { error: 0, cancelled: 0 };
  /** Includes streams that were ended because of invalid or unread messages. */
  readonly downstreamEnds = { error: 0, cancelled: 0 };
  /** Empty after a response. */
  trouble = '';
}
