import type { CertificatesView } from './known-certificates.ts';

export function certificatesText({ now, counts, certificates, unread, signedElsewhere }: CertificatesView): string {
  const notes = unread.map((text) => `not read: ${text}`);
  if (certificates.some(({ isConfirmed }) => isConfirmed === false)) notes.push(unconfirmedNote);
  if (signedElsewhere > 0) notes.push(`not known: ${signedElsewhere} workloads ${signedElsewhereText}`);
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  if (kinds.length === 0) return `${['no certificate is known', ...notes].join('\n')}\n`;
  const rows = certificates.map(({ expires, kind, name, renewal, isConfirmed }) => [
    expires,
    remainingTimeText(Date.parse(expires) - Date.parse(now)),
    kind,
    name,
    `renewed by ${renewal}${isConfirmed === false ? ' (use not confirmed)' : ''}`,
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  const outputLines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${[`known: ${kinds.join(', ')}; the next to expire:`, ...outputLines, ...notes].join('\n')}\n`;
}

const unconfirmedNote =
  'use not confirmed: the workload does not report its certificate to this replica, so it may have a later one that another replica signed';
const signedElsewhereText = 'use certificates that other replicas signed: their lists have the expiry';

function remainingTimeText(ms: number): string {
  if (ms <= 0) return 'expired';
  const hours = ms / 3_600_000;
  if (hours < 1) return `in ${Math.ceil(ms / 60_000)} min`;
  return hours < 48 ? `in ${Math.floor(hours)} h` : `in ${Math.floor(hours / 24)} d`;
}
