import { status } from '@grpc/grpc-js';

export class IssuanceCounts {
  requests = 0;
  issuedCount = 0;
  /** Requests without valid credentials of the mesh. */
  unauthenticated = 0;
  /** Counts authenticated callers only. */
  readonly rejectedByCode = new Map<string, number>();

  recordResponse(code: status): void {
    this.requests++;
    if (code === status.OK) this.issuedCount++;
    else if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) this.unauthenticated++;
    else this.rejectedByCode.set(status[code], (this.rejectedByCode.get(status[code]) ?? 0) + 1);
  }
}
