/** Counts of certificate requests, for metrics. */
import { status } from '@grpc/grpc-js';

export class IssuanceCounts {
  requests = 0;
  issued = 0;
  /** Requests without valid credentials of the mesh. */
  unauthenticated = 0;
  /** Rejected requests of authenticated callers, by gRPC status. */
  readonly failed = new Map<string, number>();

  responded(code: status): void {
    this.requests++;
    if (code === status.OK) this.issued++;
    else if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) this.unauthenticated++;
    else this.failed.set(status[code], (this.failed.get(status[code]) ?? 0) + 1);
  }
}
