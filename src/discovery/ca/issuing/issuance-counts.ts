/** Counts of certificate requests, for metrics. */
import { status } from '@grpc/grpc-js';

export class IssuanceCounts {
  requests = 0;
  issued = 0;
  /** Requests whose caller is unknown or of another mesh. */
  unauthenticated = 0;
  /** Requests of known callers without a certificate, by the name of a gRPC status. */
  readonly failed = new Map<string, number>();

  /** @param code status of the response */
  responded(code: status): void {
    this.requests++;
    if (code === status.OK) this.issued++;
    else if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) this.unauthenticated++;
    else this.failed.set(status[code], (this.failed.get(status[code]) ?? 0) + 1);
  }
}
