/** Text output of `pilot-discovery certificates`. */
import type { CertificatesView } from './known-certificates.ts';

export function certificatesText({ now, counts, certificates, unread }: CertificatesView): string {
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  if (kinds.length === 0) return `no certificate is known${unread.map((text) => `\nnot read: ${text}`).join('')}\n`;
  const rows = certificates.map(({ expires, kind, name, renewal }) => [
    expires,
    remainingTimeText(Date.parse(expires) - Date.parse(now)),
    kind,
    name,
    `renewed by ${renewal}`,
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${[`known: ${kinds.join(', ')}; the next to expire:`, ...lines, ...unread.map((text) => `not read: ${text}`)].join('\n')}\n`;
}

function remainingTimeText(ms: number): string {
  if (ms <= 0) return 'expired';
  const hours = ms / 3_600_000;
  if (hours < 1) return `in ${Math.ceil(ms / 60_000)} min`;
  return hours < 48 ? `in ${Math.floor(hours)} h` : `in ${Math.floor(hours / 24)} d`;
}
