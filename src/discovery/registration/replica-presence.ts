/**
 * That this replica lives: a Lease of its own, which it alone stands for, and renews as any other. When it is renewed no more, what the replica
 * has left behind is somebody else's to clear away (orphaned-entries.ts).
 */
import type { Duty, DutyReport } from '../leader/duty.ts';

const prefix = 'istiod-replica-';
/** Of an identity, behind the name of its pod: the part by chance. */
const ownPart = /_([0-9a-f][0-9a-f-]{6,34}[0-9a-f])$/;

/** The name of a replica's Lease; undefined: this is no replica of ours, as one of Istio's own. */
export function presenceLeaseOf(identity: string): string | undefined {
  const [, part] = ownPart.exec(identity) ?? [];
  return part && `${prefix}${part}`;
}

export function isPresenceLease(name: string): boolean {
  return name.startsWith(prefix);
}

/** Nothing is ever due: to have the Lease is all of it. */
export class ReplicaPresence implements Duty {
  readonly lease: string;
  readonly isDue = false;

  /** @param identity of this replica */
  constructor(identity: string) {
    const lease = presenceLeaseOf(identity);
    if (lease === undefined) throw new Error(`${identity} is no identity of a replica`);
    this.lease = lease;
  }

  watch(): () => void {
    return () => {};
  }

  async writeDue(): Promise<DutyReport> {
    return { written: 0, failed: 0, reason: '' };
  }
}
