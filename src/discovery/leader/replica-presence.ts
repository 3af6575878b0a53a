/**
 * That this replica lives: a Lease of its own, which it alone stands for, and renews as any other. When it is renewed no more, what the replica
 * has left behind is somebody else's to clear away (src/discovery/registration/orphaned-entries.ts). Whoever has it
 * writes what its own proxies reject (status/distribution-status.ts).
 */
const prefix = 'istiod-replica-';
/** The part by chance of an identity, behind the name of its pod. */
const ownPart = /_([0-9a-f][0-9a-f-]{6,34}[0-9a-f])$/;

/** The name of a replica's Lease; undefined: this is no replica of ours, as one of Istio's own. */
export function presenceLeaseOf(identity: string): string | undefined {
  const [, part] = ownPart.exec(identity) ?? [];
  return part && `${prefix}${part}`;
}

export function isPresenceLease(name: string): boolean {
  return name.startsWith(prefix);
}
